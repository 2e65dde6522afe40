"""Attention by a matrix: two inputs of three tokens; W goes one way, its factors K and Q another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..theory.known_matrices import few_tokens
from .figure import OURS, Check, Figure, Tables
from .plane_walks import drawn, shared_checks, tables_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

CAPTION = """\
Two inputs with three tokens each in the plane and a query z for each; attention logits x'W z. The follow-up on \
self-attention as a support vector machine (arXiv:2308.16898) states that training W ends in the max-margin matrix \
of the Frobenius norm, training W = K Q' in that of the nuclear norm. Data of the published notebook; steps of \
length 0.1, for K and Q each. Left and middle: the path W(t) z of each input, which turns towards W z of its own \
solution (directions are true, the radius is a logarithm). Right: 1 − cos. Here the nuclear solution has rank 1: both \
inputs look along one line."""


def compute(small: bool) -> Tables:
    return tables_of(few_tokens())


def draw(tables: Tables) -> Drawing:
    return drawn(tables)


def checks(tables: Tables) -> list[Check]:
    answer = tables["answer"]
    return [
        *shared_checks(tables, ("0.0018", "0.1114")),
        Check.printed("Frobenius norm of its solution", answer["frobenius"][0], "8.6857", OURS),
        Check.printed("nuclear norm of its solution", answer["nuclear"][0], "9.7548", OURS),
        Check("rank of the Frobenius solution", answer["frobenius_rank"][0], 2, 0, OURS),
        Check("rank of the nuclear solution", answer["nuclear_rank"][0], 1, 0, OURS),
        Check.printed("1 − cos between the two", answer["apart"][0], "0.1096", OURS),
    ]


FIGURE = Figure(
    name="matrix-paths",
    title="W and its factors K, Q go to different max-margin matrices",
    caption=CAPTION,
    compute=compute,
    draw=draw,
    checks=checks,
)
