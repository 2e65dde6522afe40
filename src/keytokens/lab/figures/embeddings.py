"""The figures of trained embeddings on planted texts. The settings are ours; none of them is known of the paper."""

from __future__ import annotations

import numpy as np

from ..claims.embeddings.data import closed_form, loss_of_selection, planted
from ..claims.embeddings.stages import Step, gaussian_start, second_stage
from .figure import OURS, PAPER, Check, Sheet, Table, Tables, figure, table
from .look import BLACK, STYLES, Axes, number
from .tables import exponent, sweep, where

ETA = 200.0


def _one_step(d: int) -> dict[str, float]:
    """How far one step is from its leading term; means over five seeds (n = 200, T = 8, V = 50).

    `error` is the largest |error_s|/freq_s, `scaled` that times sqrt(d); `slope` is 1/2 in theory; `least_cosine` is
    over the important tokens; `third` is a singular value beside the first; `share_of_bound` the largest of any run.
    """
    names = ("error", "scaled", "slope", "least_cosine", "third")
    rows, share = [], 0.0
    for seed in range(5):
        rng = np.random.default_rng([seed, d])
        data = planted(rng, 200, 8, 5, 5, 40)
        step = Step(data, gaussian_start(rng, data.V, d), 1.0)
        error, sizes = step.relative_error, step.singular_values
        least = step.alignment[data.kinds != 0].min()
        rows.append([error, error * np.sqrt(d), step.slope, least, sizes[2] / sizes[0]])
        share = max(share, float(np.max(step.error / step.error_bound)))
    return {"d": d, **dict(zip(names, np.mean(rows, axis=0).tolist(), strict=True)), "share_of_bound": share}


def token_table() -> Table:
    """Every token of a planted vocabulary: alpha, Delta, values before and after the step, logits after the flow.

    `E_p` is for p/|p| at |p| = 1000, `form` the closed form of the same in the limit of a large d.
    """
    rng = np.random.default_rng(0)
    data = planted(rng, 200, 8, 5, 5, 40)
    step = Step(data, gaussian_start(rng, data.V, 1024), ETA)
    run = second_stage(step, [100.0, 1000.0], tolerance=1e-6, growth=20.0)
    form = closed_form(data, step.start.E, step.start.v, ETA)
    return {
        "kind": data.kinds,
        "alpha": step.alpha,
        "frequency": step.frequency,
        "delta": data.posterior_difference(),
        "b0": step.start.E @ step.start.v,
        "b1": step.b,
        "E_p": step.E @ run.p / run.norm,
        "form": form.logits * form.margin,
    }


def compute_step(small: bool) -> Tables:
    dims = (64, 256, 1024) if small else (64, 256, 1024, 4096, 16384)
    tokens = token_table()
    return {
        "tokens": {name: tokens[name] for name in ("kind", "alpha", "b0", "b1")},
        "dimensions": sweep(_one_step, d=dims),
    }


def checks_step(tables: Tables) -> list[Check]:
    dims, tokens = tables["dimensions"], tables["tokens"]
    wide = dims["d"] >= 1024
    gain = (tokens["b1"] - tokens["b0"]) / ETA
    return [
        Check.at_most("P2: third singular value of E₁ − E₀, over the first", dims["third"].max(), 1e-12, PAPER),
        *(
            Check(f"P3: slope on α, d = {d}", slope, 0.5, 0.01, PAPER)
            for d, slope in zip(dims["d"][wide], dims["slope"][wide], strict=True)
        ),
        Check("P3: slope on α in the picture", np.polyfit(tokens["alpha"], gain, 1)[0], 0.5, 0.01, PAPER),
        Check.at_least("P4: error √d, smallest", dims["scaled"].min(), 0.85, OURS),
        Check.at_most("P4: error √d, largest", dims["scaled"].max(), 1.25, OURS),
        Check("P4: exponent of the error in d", exponent(dims["d"], dims["error"]), -0.5, 0.06, OURS),
        Check.at_most("error over its bound, largest", dims["share_of_bound"].max(), 1.0, OURS),
    ]


def _by_kind(axes: Axes, tokens: Table, x: str, y: str) -> None:
    """The tokens as points, one style for each kind."""
    for kind, name, style in zip((1, -1, 0), ("positive", "negative", "irrelevant"), STYLES, strict=False):
        mine = where(tokens, kind=kind)
        axes.plot(mine[x], mine[y], style.marker, color=style.color, label=name)


@figure("step", "One gradient step on the embeddings", compute_step, checks_step, sheet=Sheet(2, 3.4))
def draw_step(tables: Tables, left: Axes, right: Axes) -> None:
    """Planted data: completely positive, completely negative and irrelevant tokens. The paper states that one
    gradient step aligns each embedding with v in proportion to the token's average signed frequency. Left: values
    after a step of η = 200 in dimension 1024 lie on a line of slope η/2, with the noise of the random start. Right
    (ours): what is left over, per frequency of the token, falls like 1/√d.
    """
    tokens, dims = tables["tokens"], tables["dimensions"]
    _by_kind(left, tokens, "alpha", "b1")
    ends = np.array([tokens["alpha"].min(), tokens["alpha"].max()])
    left.plot(ends, ETA / 2 * ends, color=BLACK, linewidth=1, label="slope η/2")
    left.set(xlabel="average signed frequency α of a token", ylabel="value v·E after the step")
    left.legend()
    right.loglog(dims["d"], dims["error"], **STYLES[0].all, label="largest error / frequency")
    law = dims["error"][0] * np.sqrt(dims["d"][0] / dims["d"])
    right.loglog(dims["d"], law, color=BLACK, linewidth=1, label="1/√d")
    right.set(xlabel="dimension d", ylabel="distance from the leading term")
    right.legend()


NORMS = (*(8.0 * 2**k for k in range(7)), 400.0, 1000.0)


def compute_flow(small: bool) -> Tables:
    """By the norm of p (n = 100, T = 6, 8 important and 20 irrelevant tokens; eta = 200, d = 512).

    `missing` is the largest attention of a document beside its important token, `pace` |p| / (|p_*| log t) by the time
    t of the flow, `excess` log(L - L_*).
    """
    rng = np.random.default_rng(0)
    data = planted(rng, 100, 6, 4, 4, 20)
    step = Step(data, gaussian_start(rng, data.V, 512), 200.0)
    run = second_stage(step, sorted(NORMS))
    size = run.solution.norm if run.solution else np.nan
    limit = loss_of_selection(data, step.E @ step.start.v, data.important)
    norm = np.array([state.norm for state in run.states])
    counts = run.problem.counts
    chosen = counts.indices == np.repeat(data.important, np.diff(counts.indptr))
    readings = [state.reading for state in run.states]
    log_time = np.interp(norm, run.path["norm"], run.path["log_time"])
    found = table(
        norm=norm,
        misalignment=[run.misalignment(k) for k in range(len(norm))],
        margin_ratio=[run.margin_ratio(k) for k in range(len(norm))],
        missing=[one.bags.sum(np.where(chosen, 0.0, one.attention)).max() for one in readings],
        loss=[one.value for one in readings],
        limit=limit,
        excess=[one.excess(one.selected).log for one in readings],
        pace=norm / (size * log_time),
    )
    return {"flow": found}


def checks_flow(tables: Tables) -> list[Check]:
    flow = tables["flow"]
    far = flow["norm"] >= 32
    slope, margins = (exponent(flow["norm"][far], y[far]) for y in (flow["misalignment"], 1 - flow["margin_ratio"]))
    attention = 1 - flow["missing"][np.abs(flow["norm"] - 32).argmin()]
    return [
        Check.at_most("P5: largest rise of the loss", float(np.diff(flow["loss"]).max()), 1e-15, OURS),
        Check("P5: last loss minus its limit", float(flow["loss"][-1] - flow["limit"][-1]), 0.0, 1e-12, OURS),
        Check.at_least("P6: least attention on the important token at |p| = 32", attention, 0.9999, OURS),
        Check("P7: exponent of 1 − cos in |p|", slope, -2.0, 0.15, OURS),
        Check("P8: exponent of the margin's distance", margins, -1.0, 0.1, OURS),
        Check("P8: margin over the best one, at the end", float(flow["margin_ratio"][-1]), 1.0, 0.003, PAPER),
        Check("P9: |p| over |p*| log t, at the end", flow["pace"][-1], 1.0, 0.05, OURS),
    ]


@figure("flow", "Gradient flow on p: selection with maximum margin", compute_flow, checks_flow, sheet=Sheet(2, 3.4))
def draw_flow(tables: Tables, left: Axes, right: Axes) -> None:
    """Planted data (100 documents of 6 tokens, 8 important and 20 irrelevant ones, d = 512), one step of η = 200 on
    the embeddings, then gradient flow on p. The paper states that p diverges, that every document selects its
    completely positive or negative token, and that the direction maximises the margin of that selection. Left
    (ours): the distance to the solver's direction falls like 1/|p|², that of the margin like 1/|p|. Right: the
    least attention on the important token, and what is left of the loss above its limit.
    """
    flow = tables["flow"]
    left.loglog(flow["norm"], flow["misalignment"], **STYLES[0].all, label="1 − cos(p, p*)")
    left.loglog(flow["norm"], 1 - flow["margin_ratio"], **STYLES[1].all, label="1 − margin / best margin")
    back, thin = flow["norm"][-1] / flow["norm"], {"color": BLACK, "linewidth": 0.8}
    left.loglog(flow["norm"], flow["misalignment"][-1] * back**2, **thin, label="slopes −2 and −1")
    left.loglog(flow["norm"], (1 - flow["margin_ratio"][-1]) * back, **thin)
    left.set_xlabel("|p|")
    left.legend()
    near = flow["norm"] <= 130
    for column, style, label in (
        (flow["missing"], STYLES[2], "1 − least attention"),
        (np.exp(flow["excess"]), STYLES[3], "loss above its limit"),
    ):
        right.semilogy(flow["norm"][near], column[near], **style.all, label=label)
    right.set(xlim=(0, 140), xlabel="|p|")
    right.legend()


def compute_shape(small: bool) -> Tables:
    tokens = token_table()
    return {"tokens": {name: tokens[name] for name in ("kind", "delta", "b1", "E_p", "form")}}


def checks_shape(tables: Tables) -> list[Check]:
    tokens = tables["tokens"]
    important = tokens["kind"] != 0
    bends = float(np.polyfit(tokens["delta"], tokens["E_p"], 2)[0])
    apart = tokens["E_p"][important].min() - tokens["E_p"][~important].max()
    away = np.abs(tokens["E_p"] - tokens["form"]).max()
    return [
        Check.at_least("least logit of an important token minus largest of the others", apart, 0, PAPER),
        Check.at_most("value of negative tokens, largest", tokens["b1"][tokens["kind"] < 0].max(), 0, PAPER),
        Check.at_least("value of positive tokens, smallest", tokens["b1"][tokens["kind"] > 0].min(), 0, PAPER),
        Check.at_least("quadratic coefficient of p·E", bends, 0, PAPER),
        Check.at_most("largest distance of a logit from the closed form", away, 0.1, OURS),
    ]


@figure(
    "u-shape",
    "Planted data: values and attention by posterior difference",
    compute_shape,
    checks_shape,
    sheet=Sheet(2, 3.4),
)
def draw_shape(tables: Tables, left: Axes, right: Axes) -> None:
    """Every token of a planted vocabulary after both stages (d = 1024, η = 200). Left: the value v·E grows with the
    difference of the posteriors. Right: the attention logit p·E (of the direction of p) is large at both ends: the
    U shape that the paper shows. The crosses are the closed form for orthonormal embeddings (ours): M/(K + M) on
    the important tokens of both signs and −K/(K + M) on the others, times the margin √(1/K + 1/M).
    """
    tokens = tables["tokens"]
    for axes, column, name in ((left, "b1", "value v·E"), (right, "E_p", "attention logit p·E / |p|")):
        _by_kind(axes, tokens, "delta", column)
        axes.set(xlabel="posterior difference of a token", ylabel=name)
    right.plot(tokens["delta"], tokens["form"], "kx", markersize=4)
    left.legend()


DIMENSIONS = {4: 0.38, 8: 0.61, 16: 0.72, 24: 0.71, 28: 0.82, 30: 0.94, 32: 0.94, 64: 0.93, 128: 1.00}
DRAWS = "Mean of a few draws; theirs are others."


def _basin_row(eta: float, c: float) -> dict[str, float]:
    """The fraction of documents that select their token, from p = c v after a step of eta.

    n = 20, T = 4, 5 positive, 1 negative and 8 irrelevant tokens, mirrored; d = 2048.
    """
    rng = np.random.default_rng(0)
    data = planted(rng, 20, 4, 5, 1, 8, mirrored=True)
    step = Step(data, gaussian_start(rng, data.V, 2048), eta)
    run = second_stage(step, [20.0, 100.0], c * step.start.v)
    return {"eta": eta, "c": c, "selected": run.leading(data.important)}


def _dimension_row(d: int, seeds: int) -> dict[str, float]:
    """The mean fraction of documents that select their token (V = 28, n = 100, T = 6, eta = 50).

    Below d = V nothing guarantees that some p selects all important tokens: `separable` is the fraction of sets where
    one does.
    """
    found = []
    for seed in range(seeds):
        rng = np.random.default_rng([seed, d])
        data = planted(rng, 100, 6, 4, 4, 20)
        step = Step(data, gaussian_start(rng, data.V, d), 50.0)
        run = second_stage(step, [40.0, 400.0], tolerance=1e-6, growth=20.0, most_evaluations=3000)
        found.append((run.leading(data.important), run.separates(data.important)))
    selected, separable = np.mean(found, axis=0).tolist()
    return {"d": d, "selected": selected, "separable": separable}


def compute_select(small: bool) -> Tables:
    etas, cs = ((100, 400), (0, 4)) if small else ((25, 50, 100, 200, 400, 800), (0, 0.25, 0.5, 1, 2, 4))
    dims, seeds = ((8, 128), 2) if small else (DIMENSIONS, 4)
    return {"basin": sweep(_basin_row, eta=etas, c=cs), "dimensions": sweep(_dimension_row, d=dims, seeds=[seeds])}


def checks_select(tables: Tables) -> list[Check]:
    basin, dims = tables["basin"], tables["dimensions"]
    least = basin["selected"][(basin["c"] == 0) & (basin["eta"] >= 100)].min()
    far = where(basin, eta=100, c=4)["selected"][0]
    return [
        Check("P11: least fraction selected from p = 0, η ≥ 100", least, 1, 0, PAPER),
        Check("P11: fraction selected from p = 4v, η = 100: one label", far, 0.5, 0, OURS),
        *(
            Check(f"P14: fraction selected, d = {d}", share, DIMENSIONS[int(d)], 0.2, OURS, DRAWS)
            for d, share in zip(dims["d"], dims["selected"], strict=True)
        ),
    ]


@figure(
    "selection", "Who is selected: step size, start and dimension", compute_select, checks_select, sheet=Sheet(2, 3.4)
)
def draw_select(tables: Tables, left: Axes, right: Axes) -> None:
    """The fraction of documents that select their important token. Left (ours): from p = c·v, few and frequent
    negative tokens (5 positive, 1 negative): a start far along v leads to another optimum, where negative documents
    select irrelevant tokens; near zero all is well. Right (ours): by dimension, 28 tokens in all; below d = V
    nothing guarantees that one p selects them all. The paper's guarantee is for a large step and dimension, by a
    barrier of the loss.
    """
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
    left.set(xlabel="step size η", ylabel="start p = c v: c")
    right.semilogx(dims["d"], dims["selected"], **STYLES[0].all, label="documents that select")
    right.semilogx(dims["d"], dims["separable"], **STYLES[1].all, label="sets where some p selects all")
    right.axvline(28, color=BLACK, linewidth=1, linestyle=":")
    right.annotate("d = V", (28, 0.05), (4, 0), textcoords="offset points", fontsize=8)
    right.set(xlabel="dimension d", ylim=(0, 1.05))
    right.legend(loc="lower right", bbox_to_anchor=(1, 0.12))
