"""Attention by a matrix: two inputs of five tokens, and the lines that part the best token from the others."""

from __future__ import annotations

from ..claims.instances import more_tokens
from .figure import Figure
from .plane_walks import Expected, checks_of, drawn, tables_of

CAPTION = """\
As the figure before, with five tokens an input: the best one at (1, 0.5) or (1, −0.5), the others about (−1, 0). The \
dotted lines, across W z of each solution, stand half way between the best token and the next: each solution parts \
them with the widest margin in its own norm. Here both solutions have rank 2."""
EXPECTED = Expected(norms=("1.5264", "1.8726"), ranks=(2, 2), apart="0.0638", penalised=("0.0670", "0.00005"))

FIGURE = Figure(
    name="matrix-lines",
    title="Two inputs of five tokens: each norm has its own separating lines",
    caption=CAPTION,
    compute=lambda small: tables_of(more_tokens()),
    draw=lambda tables: drawn(tables, lines=True),
    checks=lambda tables: checks_of(tables, EXPECTED),
)
