"""The rates of four step rules side by side: norm, attention and direction against steps, with fitted exponents."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..claims.instances import tied
from ..claims.rates import Course, followed
from ..descent.steps import Normalised, Plain, Polyak, Step, power
from ..problems.geometry import misalignment
from ..problems.selection_loss import SelectionProblem, Vector
from ..problems.trials import Trials
from ..svm.problem import MarginProblem
from ..svm.solver import solve
from .figure import OURS, PAPER, Check, Figure, Rule, Table, Tables, table
from .look import STYLES, sheet
from .tables import value_at

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

CAPTION = """\
Four inputs with five tokens in twenty dimensions; in each input one token has score 1 and the others 0. Descent from \
p = 0 by four rules. A paper on rates states that normalised and Polyak steps turn faster than gradient descent and \
sparsify attention faster. Ours: |p| grows like log t by gradient descent, like t by normalised steps of constant \
length and by Polyak steps, like t^(1/4) by normalised steps t^(−3/4); so does −log(1 − s), s the attention on the \
best token; and 1 − cos falls like 1/|p|². Exponents are slopes in logarithms over the last decade and a half of a \
run, of the differences where a quantity grows (exponent 0 is the law of log t), with 95% intervals by a jackknife \
over eight blocks of the tail."""
POLYAK = """\
Where L − L* and the gradient have underflowed, Polyak's quotient overflows: that is how it seems to outgrow every \
constant step. In logarithms the step is late in a run at most |p_mm|, and does not fall, so |p| grows like t."""
SAMPLE = """\
The expected numbers are of one problem of an independent run of ours, of which we know the kind but not the draw. \
So they must lie within the range of 20 problems of this kind."""
SLOW = "1/|p|² with |p| like log t is no power of t: the exponent is small and goes to 0."
RULES: dict[str, tuple[str, Step]] = {
    "plain": ("gradient descent, η = 2", Plain(2.0)),
    "normalised": ("normalised, 0.5", Normalised(0.5)),
    "decaying": ("normalised, 2 t^(−3/4)", Normalised(power(2.0, 0.75))),
    "polyak": ("Polyak", Polyak(1e6)),
}
# 1 - cos after 100, 1,000, 10,000 and 30,000 steps, where it is known
EXPECTED = {
    "plain": (6.7e-2, 2.0e-2, 1.1e-2, 8.7e-3),
    "normalised": (2.5e-3, 2.6e-5, 2.6e-7, 2.9e-8),
    "decaying": (1.4e-2, 4.2e-3, 1.2e-3, 6.8e-4),
    "polyak": (2.9e-4,),
}
# exponents of |p|, -log(1 - s) and 1 - cos, and how far off a run of 10,000 steps may be
LAWS = {
    "plain": (0.0, 0.0, None),
    "normalised": (1.0, 1.0, -2.0),
    "decaying": (0.25, 0.25, -0.5),
    "polyak": (1.0, 1.0, -2.0),
}
COLUMNS = ("norm", "attention", "one_minus_cos")
SAID = ("|p|", "−log(1 − s)", "1 − cos")


def compute(small: bool) -> Tables:
    return _tables(3000 if small else 10_000, 3 if small else 20)


def full() -> Tables:
    """30,000 steps."""
    return _tables(30_000, 20)


def _tables(steps: int, problems: int) -> Tables:
    courses = {rule: _course(0, rule, steps) for rule in RULES}
    fits = {rule: course.powers for rule, course in courses.items()}
    return {
        "courses": {name: np.concatenate([_columns(rule, courses[rule])[name] for rule in RULES]) for name in NAMES},
        "exponents": table(
            rule=list(fits),
            **{
                f"{name}{end}": [getattr(fits[rule][name], part) for rule in fits]
                for name in COLUMNS
                for end, part in ENDS
            },
        ),
        "problems": _sample(problems),
    }


def _sample(count: int) -> Table:
    """1 - cos on several problems after 100 and 1,000 steps, all problems at once; of Polyak's rule after 100."""
    problems = [tied(seed) for seed in range(count)]
    trials, targets = Trials.of(problems), [_target(problem) for problem in problems]
    rows: list[tuple[str, int, int, float]] = []
    for rule, pace in (("plain", lambda t: 2.0), ("normalised", lambda t: 0.5), ("decaying", power(2.0, 0.75))):
        p = np.zeros((count, problems[0].keys.dim))
        for t in range(1, 1001):
            p = trials.descend(1, pace(t), start=p, plain=rule == "plain")
            if t in (100, 1000):
                rows += [(rule, seed, t, misalignment(p[seed], targets[seed])) for seed in range(count)]
    rows += [("polyak", seed, 100, float(_course(seed, "polyak", 100).away[-1])) for seed in range(count)]
    names = ("rule", "seed", "t", "one_minus_cos")
    return table(**dict(zip(names, (np.array(column) for column in zip(*rows, strict=True)), strict=True)))


NAMES = ("rule", "t", "norm", "minus_log_gap", "one_minus_cos")
ENDS = (("", "exponent"), ("_low", "low"), ("_high", "high"))


def _target(problem: SelectionProblem) -> Vector:
    return solve(MarginProblem.from_selection(problem.keys, [0] * len(problem.keys))).p


def _course(seed: int, rule: str, steps: int) -> Course:
    problem = tied(seed)
    return followed(problem, RULES[rule][1], np.zeros(problem.keys.dim), steps, _target(problem))


def _columns(rule: str, course: Course) -> Table:
    names = np.full(len(course.t), rule)
    return dict(zip(NAMES, (names, course.t, course.norm, -course.log_gap, course.away), strict=True))


def _of(found: Table, rule: str) -> Table:
    return {name: column[found["rule"] == rule] for name, column in found.items()}


def draw(tables: Tables) -> Drawing:
    drawing, panels = sheet(3, 3.9)
    for panel, name, column, said in zip(panels, COLUMNS, NAMES[2:], SAID, strict=True):
        for style, (rule, (words, _)) in zip(STYLES, RULES.items(), strict=False):
            mine, fit = _of(tables["courses"], rule), _of(tables["exponents"], rule)
            ends = [f"{round(float(fit[name + end][0]), 2) + 0.0:.2f}".replace("-", "−") for end, _ in ENDS]
            label = f"{words}: {ends[0]} [{ends[1]}, {ends[2]}]"
            panel.loglog(mine["t"], mine[column], **style.all, markevery=8, label=label)
        panel.set_xlabel("steps t")
        panel.set_ylabel(said)
        panel.legend(loc="lower left" if name == "one_minus_cos" else "upper left", fontsize=6.5)
    for panel in panels[:2]:
        low, high = panel.get_ylim()
        panel.set_ylim(low, high * 60)  # room for the legend
    return drawing


def checks(tables: Tables) -> list[Check]:
    found = []
    room = 1 if tables["courses"]["t"].max() >= 10_000 else 4  # a short run is farther from the law
    for rule, laws in LAWS.items():
        fit = _of(tables["exponents"], rule)
        for column, said, law in zip(COLUMNS, SAID, laws, strict=True):
            name = f"{RULES[rule][0]}: exponent of {said}"
            note = POLYAK if rule == "polyak" else ""
            if law is None:
                found.append(Check(name, fit[column][0], -0.4, 0, OURS, SLOW, Rule.AT_LEAST))
            else:
                found.append(Check(name, fit[column][0], law, room * (0.1 if rule == "plain" else 0.05), OURS, note))
    return [*found, *_ranges(tables["problems"]), *_later(tables["courses"]), *_faster(tables["courses"])]


def _ranges(problems: Table) -> list[Check]:
    """How far an expected 1 - cos is outside the range of the problems, as a factor."""
    if len(np.unique(problems["seed"])) < 20:
        return []
    found = []
    for rule, expected in EXPECTED.items():
        for t, value in zip((100, 1000), expected, strict=False):
            mine = problems["one_minus_cos"][(problems["rule"] == rule) & (problems["t"] == t)]
            outside = max(mine.min() / value, value / mine.max(), 1.0)
            name = f"{RULES[rule][0]}: {value:.1e} after {t:,} steps, factor outside the range"
            found.append(Check(name, outside, 1, 1e-12, OURS, SAMPLE))
    return found


def _later(courses: Table) -> list[Check]:
    """1 - cos at later steps beside that at 1,000: the law, without the problem's own constant."""
    found = []
    for rule, expected in EXPECTED.items():
        mine = _of(courses, rule)
        for t, value in zip((10_000, 30_000), expected[2:], strict=False):
            if t <= mine["t"][-1]:
                share, wanted = (
                    value_at(mine, t, "one_minus_cos") / value_at(mine, 1000, "one_minus_cos"),
                    value / expected[1],
                )
                name = f"{RULES[rule][0]}: 1 − cos at {t:,} beside 1,000 steps"
                found.append(Check(name, share, wanted, 0.25 * wanted, OURS))
    return found


def _faster(courses: Table) -> list[Check]:
    """At the end of the runs, beside gradient descent."""
    ends = {rule: {name: column[-1] for name, column in _of(courses, rule).items()} for rule in RULES}
    return [
        check
        for rule in ("normalised", "polyak")
        for check in (
            Check(
                f"{RULES[rule][0]}: 1 − cos beside gradient descent's",
                ends[rule]["one_minus_cos"] / ends["plain"]["one_minus_cos"],
                0.01,
                0,
                PAPER,
                rule=Rule.AT_MOST,
            ),
            Check(
                f"{RULES[rule][0]}: −log(1 − s) beside gradient descent's",
                ends[rule]["minus_log_gap"] / ends["plain"]["minus_log_gap"],
                10,
                0,
                PAPER,
                rule=Rule.AT_LEAST,
            ),
        )
    ]


FIGURE = Figure(
    name="rates",
    title="How fast four step rules turn to the max-margin direction",
    caption=CAPTION,
    compute=compute,
    draw=draw,
    checks=checks,
    full=full,
)
