"""What training believes before it sees a text, as an option of the estimators."""

from __future__ import annotations

from sklearn.base import BaseEstimator

from ..base.checks import check_number
from ..base.errors import refusal

_LARGEST = 1e9  # so that sums of squares stay finite in single precision


class Prior(BaseEstimator):  # type: ignore[misc]
    """What training believes before it sees a text, and when it stops to follow the texts.

    Parameters
    ----------
    ratio, spread : float
        The prior of the values: how much of the log-count ratio its mean holds, and how wide it is.
    sink : float
        The weight of the sink, in mean document weights. 0: no sink.
    attention_penalty : float
        Precision of the prior of the attention logits: large for attention that stays close to it.
    tol : float
        Stop when two steps in a row lower the objective by less than this share of it each. The default stops early,
        which predicts better than the exact minimum; for that one, try 1e-6.

    Examples
    --------
    >>> from keytokens import KeyTokenClassifier, Prior
    >>> KeyTokenClassifier(prior=Prior(sink=0))
    KeyTokenClassifier(prior=Prior(sink=0))
    >>> KeyTokenClassifier().set_params(prior__sink=0).get_params()["prior__sink"]
    0
    """

    def __init__(
        self,
        ratio: float = 1.5,
        spread: float = 1.6,
        sink: float = 0.3,
        attention_penalty: float = 1.0,
        tol: float = 0.04,
    ) -> None:
        self.ratio = ratio
        self.spread = spread
        self.sink = sink
        self.attention_penalty = attention_penalty
        self.tol = tol

    def check_options(self) -> None:
        """Refuse options that break a rule, as `fit` does before it begins."""
        for name, value in self.get_params().items():
            check_number("Prior", name, value, 0, above=name in ("spread", "attention_penalty", "tol"))
            if name != "tol" and value > _LARGEST:
                raise refusal("Prior", name, f"be at most {_LARGEST:g}", value)
