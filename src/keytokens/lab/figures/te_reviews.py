"""Trained embeddings on simulated reviews: all of E and p trained, v fixed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .figure import OURS, Check, Figure, Rule, Tables, table
from .look import two_panels
from .simulations import review_tables

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

CAPTION = """\
A vocabulary of 1,500 tokens with Zipf frequencies of which 15 % know the label, 5,000 documents of 80 tokens; E \
and p in dimension 64 trained by Adam, v fixed (ours; the paper's settings are not known). Tokens with at least 100 \
occurrences: values grow with the posterior difference, attention logits with its size."""


def compute(small: bool) -> Tables:
    found = review_tables(n=2500, epochs=8) if small else review_tables()
    return {
        "tokens": table(**found.tokens),
        "bins": table(**found.bins),
        "numbers": table(**{name: [value] for name, value in found.numbers.items()}),
    }


def draw(tables: Tables) -> Drawing:
    tokens = tables["tokens"]
    return two_panels(tokens["delta"], tokens["E_v"], tokens["E_p"], tokens["frequency"])


def checks(tables: Tables) -> list[Check]:
    numbers = {name: float(column[0]) for name, column in tables["numbers"].items()}
    return [
        Check(
            "slope of the first step on α, over |v|²",
            numbers["step_slope"],
            0.5,
            0.06,
            OURS,
            "In dimension 64 the error of one step is some tenth of the frequency.",
        ),
        Check("correlation of the first step with α", numbers["step_correlation"], 0.99, 0.006, OURS),
        Check(
            "P12: Spearman of v·E and the difference", numbers["rank_value_delta"], 0.85, 0, OURS, rule=Rule.AT_LEAST
        ),
        Check("P13: quadratic coefficient of p·E", numbers["curvature"], 0, 0, OURS, rule=Rule.AT_LEAST),
        Check(
            "P13: Spearman of p·E and the size of the difference",
            numbers["rank_logit_size"],
            0.6,
            0,
            OURS,
            rule=Rule.AT_LEAST,
        ),
        Check("P13: Spearman of p·E and the difference", numbers["rank_logit_delta"], 0.0, 0.15, OURS),
        Check("accuracy on new documents", numbers["held_out_accuracy"], 0.95, 0.03, OURS),
    ]


FIGURE = Figure(
    name="simulated-reviews",
    title="Simulated reviews: values and attention after training",
    caption=CAPTION,
    compute=compute,
    draw=draw,
    checks=checks,
)
