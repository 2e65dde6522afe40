"""Trained embeddings: when every document selects its token, by step size, start and dimension."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .figure import OURS, PAPER, Check, Figure, Rule, Tables, table
from .look import BLACK, STYLES, number, sheet
from .simulations import alternative_table, barrier_table, basin_table, dimension_table, robustness_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

CAPTION = """\
The fraction of documents that select their important token. Left (ours): from p = c·v, few and frequent negative \
tokens (5 positive, 1 negative): a start far along v leads to another optimum, where negative documents select \
irrelevant tokens; near zero all is well. Right (ours): by dimension, 28 tokens in all; below d = V nothing \
guarantees that one p selects them all. The paper's guarantee is for a large step and dimension, by a barrier of \
the loss."""
DIMENSIONS = {4: 0.38, 8: 0.61, 16: 0.72, 24: 0.71, 28: 0.82, 30: 0.94, 32: 0.94, 64: 0.93, 128: 1.00}
NEAR = "Irrelevant tokens have values near 0, not 0, and the better ones of them are selected."
LUCK = """\
Six other draws selected every token at η = 200 and 1000. With 100 documents that is luck: an irrelevant token may \
have a larger signed frequency than an important one, as in one of our draws; 64 K² (T − 1)/M = 1,024 documents would \
keep four standard deviations between them."""
# selected fraction and final loss of an earlier draw: positives, negatives, eta, c
ENDS = {
    (5, 1, 100, 0): (1.0, 0.1269),
    (5, 1, 100, 0.5): (1.0, 0.1269),
    (5, 1, 100, 4): (0.5, 0.4693),
    (5, 1, 400, 0): (1.0, 0.0033),
    (5, 1, 400, 0.5): (0.5, 0.3289),
    (5, 1, 400, 4): (0.5, 0.3289),
    (5, 1, 2200, 0): (1.0, 0.0),
    (5, 1, 2200, 0.5): (1.0, 0.0),
    (3, 3, 100, 4): (0.5, 0.4001),
}


def compute(small: bool) -> Tables:
    if small:
        cases = [(5, 1, 100.0, 0.0), (5, 1, 100.0, 4.0)]
        return {
            "basin": table(**basin_table((100, 400), (0, 4))),
            "dimensions": table(**dimension_table((8, 128), 2)),
            "ends": table(**alternative_table(cases)),
            "barrier": table(**barrier_table(1, (0.5, 1.2), (0.0, 4.0))),
        }
    return {
        "basin": table(**basin_table()),
        "dimensions": table(**dimension_table()),
        "ends": table(**alternative_table()),
        "barrier": table(**barrier_table()),
        "robustness": table(**robustness_table()),
    }


def draw(tables: Tables) -> Drawing:
    drawing, (left, right) = sheet(2, 3.4)
    basin, dims = tables["basin"], tables["dimensions"]
    etas, cs = np.unique(basin["eta"]), np.unique(basin["c"])
    grid = np.zeros((len(cs), len(etas)))
    grid[np.searchsorted(cs, basin["c"]), np.searchsorted(etas, basin["eta"])] = basin["selected"]
    left.imshow(grid, origin="lower", aspect="auto", cmap="cividis", vmin=0, vmax=1.2)
    for (i, j), value in np.ndenumerate(grid):
        left.text(j, i, f"{value:.2f}", ha="center", va="center", fontsize=8, color="white" if value < 0.75 else BLACK)
    left.set_xticks(range(len(etas)), [number(eta) for eta in etas])
    left.set_yticks(range(len(cs)), [number(c) for c in cs])
    left.grid(visible=False)
    left.set_xlabel("step size η")
    left.set_ylabel("start p = c v: c")
    right.semilogx(dims["d"], dims["selected"], **STYLES[0].all, label="documents that select")
    right.semilogx(dims["d"], dims["separable"], **STYLES[1].all, label="sets where some p selects all")
    right.axvline(28, color=BLACK, linewidth=1, linestyle=":")
    right.annotate("d = V", (28, 0.05), (4, 0), textcoords="offset points", fontsize=8)
    right.set_xlabel("dimension d")
    right.set_ylim(0, 1.05)
    right.legend(loc="lower right", bbox_to_anchor=(1, 0.12))
    return drawing


def checks(tables: Tables) -> list[Check]:
    ends, dims, walls = tables["ends"], tables["dimensions"], tables["barrier"]
    below = walls["loss"] < walls["barrier"]
    found = [
        Check("P10: runs that start below the barrier", int(below.sum()), 1, 0, OURS, rule=Rule.AT_LEAST),
        Check(
            "P10: least fraction selected below the barrier",
            float(walls["selected"][below].min(initial=1.0)),
            1.0,
            0,
            PAPER,
        ),
        Check(
            "runs above the barrier that miss tokens",
            int((walls["selected"][~below] < 1).sum()),
            1,
            0,
            OURS,
            rule=Rule.AT_LEAST,
        ),
    ]
    for k in range(len(ends["eta"])):
        case = (int(ends["positives"][k]), int(ends["negatives"][k]), int(ends["eta"][k]), float(ends["c"][k]))
        selected, loss = ENDS[case]
        name = "{}+{} tokens, η = {}, c = {:g}".format(*case)
        limit = ends["best"][k] if selected == 1 else ends["alternative"][k]
        found += [
            Check(f"P11: fraction selected, {name}", ends["selected"][k], selected, 0, OURS),
            Check(
                f"P11: loss at the end, {name}",
                ends["loss"][k],
                limit,
                0.01,
                OURS,
                NEAR + f" Another draw ended at {loss:.4f}.",
            ),
        ]
    found += [
        Check(
            f"P14: fraction selected, d = {d}",
            share,
            DIMENSIONS[int(d)],
            0.2,
            OURS,
            "Mean of a few draws; theirs are others.",
        )
        for d, share in zip(dims["d"], dims["selected"], strict=True)
    ]
    if "robustness" in tables:
        found += _robustness(tables)
    return found


def _robustness(tables: Tables) -> list[Check]:
    runs = tables["robustness"]
    found = []
    for k in range(len(runs["eta"])):
        name, small = f"n = {runs['n'][k]}, η = {runs['eta'][k]:g}", runs["n"][k] < 200
        found.append(
            Check(f"mean fraction selected, {name}", runs["mean_selected"][k], 0.98, 0.04, OURS, LUCK * bool(small))
        )
        if runs["eta"][k] > 100 and not small:
            found.append(Check(f"least fraction selected, {name}", runs["least_selected"][k], 1.0, 0, OURS))
            found.append(
                Check(f"least cos at |p| = 400, {name}", runs["least_cosine"][k], 0.99, 0, OURS, rule=Rule.AT_LEAST)
            )
    return found


FIGURE = Figure(
    name="selection",
    title="Who is selected: step size, start and dimension",
    caption=CAPTION,
    compute=compute,
    draw=draw,
    checks=checks,
)
