"""Attention by a matrix: two inputs of three tokens; W goes one way, its factors K and Q another."""

from __future__ import annotations

from ..claims.instances import few_tokens
from .figure import Figure
from .plane_walks import Expected, checks_of, drawn, tables_of

CAPTION = """\
Two inputs with three tokens each in the plane and a query z for each; attention logits x'W z. The follow-up on \
self-attention as a support vector machine (arXiv:2308.16898) states that training W ends in the max-margin matrix \
of the Frobenius norm, training W = K Q' in that of the nuclear norm. Data of the published notebook; steps of \
length 0.1, for K and Q each. Left and middle: the path W(t) z of each input, which turns towards W z of its own \
solution (directions are true, the radius is a logarithm). Right: 1 − cos. Here the nuclear solution has rank 1: both \
inputs look along one line."""
EXPECTED = Expected(norms=("8.6857", "9.7548"), ranks=(2, 1), apart="0.1096", penalised=("0.1114", "0.0018"))

FIGURE = Figure(
    name="matrix-paths",
    title="W and its factors K, Q go to different max-margin matrices",
    caption=CAPTION,
    compute=lambda small: tables_of(few_tokens()),
    draw=drawn,
    checks=lambda tables: checks_of(tables, EXPECTED),
)
