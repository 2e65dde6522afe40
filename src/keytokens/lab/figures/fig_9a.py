"""Fig 9(a): random problems in growing dimension: how often descent ends in a local or the global direction."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...model.ragged import Vector
from .figure import OURS, PAPER, Check, Figure, Rule, Table, Tables, table
from .look import BLUE, GREEN, GREY, RED, sheet
from .spheres import DIMENSIONS, difference, floored_cos, leftovers, outcomes, size

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

CAPTION = """\
Four inputs with six tokens, keys and head uniform on the sphere, random labels; 1,000 problems for each dimension \
d, normalised descent from p = 0, 1,000 steps of length 1. The paper reports that in the plane most runs do not \
saturate (attention on the selected tokens below 1 − 1e-5), that for larger d nearly all end in a locally optimal \
direction, and that the share of the global one grows with d; it prints no heights. The bars are ours. The few \
saturated runs whose selection is not locally optimal are no exceptions to the theory: ahead of each lies a minimum \
of the loss, far out and at an attention above 1 − 1e-5, or, after more steps, a locally optimal selection."""
PAPERS = """\
The paper's mean correlation with the max-margin direction is 0.997; exact descent gives 0.9999. With 1e-12 added to \
the length of the gradient the runs stop early, and the mean over d = 5, 10, 100 is 0.9976, near the paper's. That \
its code had such a floor is our inference: it is not public."""
FALLS = "A fall counts if it is larger than 3.5 standard deviations of the difference."
LEFT = """\
From the end of each of these runs the gradient flow was followed; where it found no minimum of the loss, descent \
went on to 10,000 steps. The table of left-over runs has them all."""
# of 1,000 trials each, an independent run of ours with other seeds
EXPECTED = {
    2: (699, 290, 105, 11, 127),
    5: (50, 943, 205, 7, 392),
    10: (1, 997, 354, 2, 980),
    100: (0, 999, 935, 1, 1000),
    300: (0, 1000, 991, 0, 1000),
    500: (0, 1000, 998, 0, 1000),
}
COS = {2: "0.99999", 5: "0.99975", 10: "0.99987", 100: "0.99998", 300: "0.99999", 500: "0.99999"}
WIDE = 3.5  # standard deviations
FLOORED = {5: 0.9990, 10: 0.9976, 100: 0.9959}
NAMES = ("unsaturated", "local", "best", "not_local", "separable")
SAID = (
    "not saturated",
    "locally optimal",
    "globally optimal",
    "saturated, not locally optimal",
    "best tokens separable",
)


def compute(small: bool) -> Tables:
    count = size(small)
    runs = outcomes(count)
    floored = {d: floored_cos(d, min(count, 300)) for d in FLOORED}
    return {
        "runs": runs,
        "bars": bars(runs),
        "left": leftovers(count),
        "floor": table(
            d=list(floored),
            cos=[cos.mean() for cos in floored.values()],
            error=[_error(cos) for cos in floored.values()],
        ),
    }


def bars(runs: Table) -> Table:
    """Counts for each dimension, and the mean cos of the locally optimal runs with its standard error."""
    rows = []
    for d in DIMENSIONS:
        mine = {name: column[runs["d"] == d] for name, column in runs.items()}
        counts = (
            ~mine["saturated"],
            mine["local"],
            mine["best"],
            mine["saturated"] & ~mine["local"],
            mine["separable"],
        )
        cos = 1 - mine["one_minus_cos"][mine["local"]]
        rows.append((d, len(mine["d"]), *(int(x.sum()) for x in counts), cos.mean(), _error(cos)))
    columns = (np.array(column) for column in zip(*rows, strict=True))
    return table(**dict(zip(("d", "trials", *NAMES, "cos", "cos_error"), columns, strict=True)))


def _error(cos: Vector) -> float:
    return float(cos.std() / np.sqrt(len(cos)))


def draw(tables: Tables) -> Drawing:
    drawing, (axes,) = sheet(1, 4.0)
    found = tables["bars"]
    x, bottom = np.arange(len(DIMENSIONS)), np.zeros(len(DIMENSIONS))
    parts = [
        ("best", found["best"], GREEN, ".."),
        ("local", found["local"] - found["best"], BLUE, "//"),
        ("not_local", found["not_local"], GREY, ""),
        ("unsaturated", found["unsaturated"], RED, "xx"),
    ]
    labels = dict(zip(NAMES, SAID, strict=True)) | {"local": "locally, not globally optimal"}
    for name, height, colour, hatch in parts:
        share = height / found["trials"]
        axes.bar(x, share, 0.7, bottom, color=colour, hatch=hatch, edgecolor="white", linewidth=0, label=labels[name])
        for at, low, part, count in zip(x, bottom, share, height, strict=True):
            if part > 0.04:
                box = {"boxstyle": "round,pad=0.15", "facecolor": "white", "alpha": 0.85, "edgecolor": "none"}
                axes.text(float(at), low + part / 2, str(count), ha="center", va="center", fontsize=8, bbox=box)
        bottom = bottom + share
    axes.set_xticks(x, [str(d) for d in DIMENSIONS])
    axes.grid(axis="x", visible=False)
    axes.set_xlabel("dimension d")
    axes.set_ylabel("share of the runs")
    axes.set_ylim(0, 1)
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.01), ncols=2)
    return drawing


def checks(tables: Tables) -> list[Check]:
    found, left, floor = tables["bars"], tables["left"], tables["floor"]
    settled = left["in_minimum"].astype(bool) | (left["gap_later"] > 0)
    trials = found["trials"]
    local = (found["local"] / trials)[found["d"] >= 10].min()
    return [
        Check("not saturated at d = 2, share", found["unsaturated"][0] / trials[0], 0.5, 0, PAPER, rule=Rule.AT_LEAST),
        Check("locally optimal at d ≥ 10, least share", local, 0.95, 0, PAPER, rule=Rule.AT_LEAST),
        Check("steps of d at which the global share falls", _falls(found), 0, 0, PAPER, FALLS),
        *(check for k, d in enumerate(EXPECTED) for check in _shares(found, k, d)),
        *(check for k, d in enumerate(EXPECTED) for check in _cosines(found, k, d)),
        Check("left-over runs with neither a minimum nor a local optimum ahead", (~settled).sum(), 0, 0, OURS, LEFT),
        *(
            Check(f"mean cos at d = {d} with a floor", cos, FLOORED[d], WIDE * np.sqrt(2) * error + 5e-5, OURS, PAPERS)
            for d, cos, error in zip(floor["d"].tolist(), floor["cos"], floor["error"], strict=True)
        ),
        Check("mean cos with a floor, d = 5, 10, 100", floor["cos"].mean(), 0.997, 2e-3, PAPER, PAPERS),
    ]


def _falls(found: Table) -> int:
    """Steps of d at which the share of the global direction falls by more than lot explains."""
    share, trials = (found["best"] / found["trials"]).tolist(), found["trials"].tolist()
    steps = range(len(share) - 1)
    return sum(share[k] - share[k + 1] > difference(share[k], trials[k], share[k + 1], trials[k + 1]) for k in steps)


def _shares(found: Table, k: int, d: int) -> list[Check]:
    n = int(found["trials"][k])
    shares = [
        (said, found[name][k] / n, count / 1000) for name, said, count in zip(NAMES, SAID, EXPECTED[d], strict=True)
    ]
    return [
        Check(f"share at d = {d}: {said}", share, expected, difference(share, n, expected, 1000), OURS)
        for said, share, expected in shares
    ]


def _cosines(found: Table, k: int, d: int) -> list[Check]:
    """The tail is heavy: a few hundred runs do not show how wide it is."""
    n = int(found["trials"][k])
    if n < 1000:
        return []
    # two samples of one spread; half a digit for the rounding
    wide = WIDE * np.sqrt(1 + n / 1000) * found["cos_error"][k] + 5e-6
    return [Check(f"mean cos at d = {d}", found["cos"][k], float(COS[d]), wide, OURS)]


FIGURE = Figure(
    name="9a",
    title="Random problems: which direction wins, by dimension",
    caption=CAPTION,
    compute=compute,
    draw=draw,
    checks=checks,
)
