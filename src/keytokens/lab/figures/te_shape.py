"""Trained embeddings on planted data: values follow the posterior difference, attention its absolute value."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .figure import OURS, PAPER, Check, Figure, Rule, Tables, table
from .look import STYLES, sheet
from .simulations import closed_form_table, token_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

CAPTION = """\
Every token of a planted vocabulary after both stages (d = 1024, η = 200). Left: the value v·E grows with the \
difference of the posteriors. Right: the attention logit p·E (of the direction of p) is large at both ends: the U \
shape that the paper shows. The crosses are the closed form for orthonormal embeddings (ours): M/(K + M) on the \
important tokens of both signs and −K/(K + M) on the others, times the margin √(1/K + 1/M)."""
KINDS = ((1, "positive"), (-1, "negative"), (0, "irrelevant"))
SOLVED = {"8,20,512": 0.4018, "8,20,16384": 0.4184, "4,12,16384": 0.5772, "20,40,32768": 0.2734}


def compute(small: bool) -> Tables:
    tokens = token_table()
    columns = ("kind", "delta", "b1", "E_p", "form")
    tables = {"tokens": table(**{name: tokens[name] for name in columns})}
    if not small:
        tables["closed"] = table(**closed_form_table())
    return tables


def draw(tables: Tables) -> Drawing:
    drawing, (left, right) = sheet(2, 3.4)
    tokens = tables["tokens"]
    for (kind, name), style in zip(KINDS, STYLES, strict=False):
        mine = tokens["kind"] == kind
        left.plot(tokens["delta"][mine], tokens["b1"][mine], style.marker, color=style.color, label=name)
        right.plot(tokens["delta"][mine], tokens["E_p"][mine], style.marker, color=style.color, label=name)
        right.plot(tokens["delta"][mine], tokens["form"][mine], "kx", markersize=4)
    for axes, name in ((left, "value v·E"), (right, "attention logit p·E / |p|")):
        axes.set_xlabel("posterior difference of a token")
        axes.set_ylabel(name)
    left.legend()
    return drawing


def checks(tables: Tables) -> list[Check]:
    tokens = tables["tokens"]
    important = tokens["kind"] != 0
    bends = float(np.polyfit(tokens["delta"], tokens["E_p"], 2)[0])
    found = [
        Check(
            "least logit of an important token minus largest of the others",
            float(tokens["E_p"][important].min() - tokens["E_p"][~important].max()),
            0,
            0,
            PAPER,
            rule=Rule.AT_LEAST,
        ),
        Check(
            "value of negative tokens, largest",
            float(tokens["b1"][tokens["kind"] < 0].max()),
            0,
            0,
            PAPER,
            rule=Rule.AT_MOST,
        ),
        Check(
            "value of positive tokens, smallest",
            float(tokens["b1"][tokens["kind"] > 0].min()),
            0,
            0,
            PAPER,
            rule=Rule.AT_LEAST,
        ),
        Check("quadratic coefficient of p·E", bends, 0, 0, PAPER, rule=Rule.AT_LEAST),
        Check(
            "largest distance of a logit from the closed form",
            float(np.abs(tokens["E_p"] - tokens["form"]).max()),
            0.1,
            0,
            OURS,
            rule=Rule.AT_MOST,
        ),
    ]
    if "closed" in tables:
        found += _closed(tables)
    return found


def _closed(tables: Tables) -> list[Check]:
    closed = tables["closed"]
    found = []
    for k in range(len(closed["K"])):
        K, M, d = (int(closed[name][k]) for name in ("K", "M", "d"))
        if closed["n_positive"][k] * 2 != closed["n"][k]:
            found.append(
                Check(f"p*·v, unbalanced, run {k - 3}", closed["along_v"][k], closed["along_v_form"][k], 0.1, OURS)
            )
            continue
        note = "Another draw had {:.4f}.".format(SOLVED[f"{K},{M},{d}"])
        near = 0.05 if d < 4096 else 0.006
        found += [
            Check(f"margin, K = {K}, M = {M}, d = {d}", closed["margin"][k], np.sqrt(1 / K + 1 / M), near, OURS, note),
            Check(f"p*·E, important, K = {K}, M = {M}, d = {d}", closed["important"][k], M / (K + M), near, OURS),
            Check(f"p*·E, irrelevant, K = {K}, M = {M}, d = {d}", closed["irrelevant"][k], -K / (K + M), near, OURS),
        ]
    return found


FIGURE = Figure(
    name="u-shape",
    title="Planted data: values and attention by posterior difference",
    caption=CAPTION,
    compute=compute,
    draw=draw,
    checks=checks,
)
