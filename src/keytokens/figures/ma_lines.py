"""Attention by a matrix: two inputs of five tokens, and the lines that part the best token from the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..theory.known_matrices import more_tokens
from .figure import OURS, Check, Figure, Tables
from .plane_walks import drawn, shared_checks, tables_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

CAPTION = """\
As the figure before, with five tokens an input: the best one at (1, 0.5) or (1, −0.5), the others about (−1, 0). The \
dotted lines, across W z of each solution, stand half way between the best token and the next: each solution parts \
them with the widest margin in its own norm. Here both solutions have rank 2."""


def compute(small: bool) -> Tables:
    return tables_of(more_tokens())


def draw(tables: Tables) -> Drawing:
    return drawn(tables, lines=True)


def checks(tables: Tables) -> list[Check]:
    answer = tables["answer"]
    return [
        *shared_checks(tables, ("0.00005", "0.0670")),
        Check.printed("Frobenius norm of its solution", answer["frobenius"][0], "1.5264", OURS),
        Check.printed("nuclear norm of its solution", answer["nuclear"][0], "1.8726", OURS),
        Check("rank of the Frobenius solution", answer["frobenius_rank"][0], 2, 0, OURS),
        Check("rank of the nuclear solution", answer["nuclear_rank"][0], 2, 0, OURS),
        Check.printed("1 − cos between the two", answer["apart"][0], "0.0638", OURS),
    ]


FIGURE = Figure(
    name="matrix-lines",
    title="Two inputs of five tokens: each norm has its own separating lines",
    caption=CAPTION,
    compute=compute,
    draw=draw,
    checks=checks,
)
