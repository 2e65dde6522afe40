"""The time of one explanation beside LIME and SHAP: same model, same IMDB reviews: `python -m benchmarks.explaining`.

keytokens       tokens with their attention, the sufficient set, the flip set and the certificate, one text at a time
keytokens_many  the same by `explain_many`: all texts in a row, the time divided by their number
keytokens_words as the first, and both sets of words
lime            `LimeTextExplainer` as it comes: 5,000 samples
shap            the partition explainer with a text masker as it comes: at most 500 evaluations

Of the tokens the arrays are read (places, attention, value, contribution, selected); rows and spellings are made from
them when somebody looks at one.

The reviews are those closest to the median length; LIME and SHAP explain the first few of them, in turn with keytokens.
`results/explain.csv` has a line for each explanation.
"""

from collections.abc import Callable, Sequence

import numpy as np

from benchmarks.cost import TYPICAL_WORDS
from benchmarks.datasets import load
from benchmarks.measure import installed, options_of, seconds, use_processors, write_csv

DOCUMENTS = 25_000
TEXTS, SLOW_TEXTS, REPEATS = 200, 5, 5
LIBRARIES = {"keytokens": "keytokens", "keytokens_words": "keytokens", "lime": "lime", "shap": "shap"}
OURS = ("keytokens", "keytokens_words")
MANY = "keytokens_many"

Explainer = Callable[[str], object]


def read(explanation) -> tuple:
    """What a reader sees first; parts that are computed on first use are computed here. No sets of words."""
    return explanation.tokens, explanation.sufficient.size, explanation.flip.size, str(explanation.certificate.of_items)


def read_words(explanation) -> tuple:
    return *read(explanation), explanation.sufficient_words.size, explanation.flip_words.size


def explainer(name: str, model) -> Explainer:
    """From a text to its explanation; libraries are loaded here, before the clock starts."""
    if name == "lime":
        from lime.lime_text import LimeTextExplainer

        lime = LimeTextExplainer(random_state=0)
        return lambda text: lime.explain_instance(text, model.predict_proba)
    if name == "shap":
        import shap

        partition = shap.Explainer(lambda texts: model.predict_proba(list(texts))[:, 1], shap.maskers.Text(r"\W+"))
        return lambda text: partition([text], silent=True)
    reading = read if name == "keytokens" else read_words
    return lambda text: reading(model.explain(text))


def measured(
    explainers: dict[str, Explainer], texts: Sequence[str], slow_texts: int, repeats: int
) -> list[dict[str, object]]:
    """keytokens `repeats` times on every text, LIME and SHAP once on the first ones; one text goes ahead to warm up."""
    records = []
    for explain in explainers.values():
        explain(texts[-1])
    for number, text in enumerate(texts):
        for name, explain in explainers.items():
            rounds = repeats if name == "keytokens" else int(name in OURS or number < slow_texts)
            for each in range(rounds):
                spent = seconds(lambda explain=explain, text=text: explain(text))
                place = {"method": name, "text": number, "words": len(text.split()), "round": each}
                records.append({**place, "seconds": spent})
    return records


def measured_together(model, texts: Sequence[str], repeats: int) -> list[dict[str, object]]:
    """`explain_many` on all texts, `repeats` times after one to warm up; each text gets its share of the time."""
    records = []
    for each in range(-1, repeats):
        spent = seconds(lambda: [read(one) for one in model.explain_many(texts)]) / len(texts)
        place = {"method": MANY, "round": each, "seconds": spent}
        records += [{**place, "text": number, "words": len(text.split())} for number, text in enumerate(texts)]
    return [record for record in records if record["round"] >= 0]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = options_of(__doc__)
    parser.add_argument("--documents", type=int, default=DOCUMENTS, help="reviews that the model learns from")
    parser.add_argument("--texts", type=int, default=TEXTS)
    parser.add_argument("--slow-texts", type=int, default=SLOW_TEXTS, help="for LIME and SHAP")
    parser.add_argument("--quick", action="store_true", help="a small model, two texts for LIME and SHAP")
    options = parser.parse_args(arguments)
    if options.quick:
        options.documents, options.texts, options.slow_texts = 500, 10, 2
    from keytokens import KeyTokenClassifier

    use_processors()
    names = installed(LIBRARIES)
    model = KeyTokenClassifier().fit(*mixed(*load("imdb"), options.documents))
    texts, _ = load("imdb")
    typical = sorted(texts, key=lambda text: abs(len(text.split()) - TYPICAL_WORDS))[: options.texts]
    explainers = {name: explainer(name, model) for name in names}
    records = measured_together(model, typical, REPEATS)
    records = measured(explainers, typical, options.slow_texts, REPEATS) + records
    write_csv(options.output / "explain.csv", records)
    for name in (*names, MANY):
        spent = np.median([record["seconds"] for record in records if record["method"] == name])
        print(f"{name}: {1000 * spent:.2f} ms")


def mixed(texts: Sequence[str], labels: Sequence[int], documents: int) -> tuple[list[str], list[int]]:
    """So many texts, evenly spaced: a file may hold one class after the other."""
    chosen = np.linspace(0, len(texts) - 1, min(documents, len(texts))).astype(int).tolist()
    return [texts[k] for k in chosen], [labels[k] for k in chosen]


if __name__ == "__main__":
    main()
