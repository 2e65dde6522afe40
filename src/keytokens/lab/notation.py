"""The letters: one meaning each, in code, docs, axes and messages."""

from __future__ import annotations

SYMBOLS: dict[str, str] = {
    "V": "number of tokens in the vocabulary",
    "n": "number of documents",
    "K": "number of classes; m = 1 row of values for two classes, m = K for more",
    "d": "dimension of the embeddings",
    "C": "counts (n, V), weighed by phi: c, 1 + log c, or 1",
    "T": "mean weight of a document",
    "E": "embeddings (V, d)",
    "p": "the query: direction of attention (d,)",
    "v": "the output direction (d,) or (d, K)",
    "a": "attention logits (V,), a = E p",
    "b": "values (V,), b = E v; B with one row a class",
    "c": "intercepts (m,)",
    "w": "weights exp(a); w0 is the sink's",
    "W": "weight of a token in one document, phi(count) exp(a)",
    "Q": "attention: W divided by the sum of all weights, the sink's included",
    "f": "logit of a document; F the scores (m, n) of many",
    "P": "probabilities",
    "y": "class numbers 0 .. K - 1",
    "alpha": "average signed frequency of a token",
    "r": "log-count ratio of a token",
    "h": "vote of a token for the label against a rival, W times the difference of its values",
    "L": "number of words of a text",
    "q": "exponent of a norm |.|_q; q/(q - 1) is that of the dual norm",
}
