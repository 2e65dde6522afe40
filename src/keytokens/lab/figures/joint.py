"""What Figs 3(a) to 3(c) share: head and attention trained together on three inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...model.ragged import Vector
from ..claims.instances import joint
from ..descent.steps import Normalised
from ..paths.balls import joint_path
from ..problems.geometry import angle
from ..problems.selection_loss import JointProblem
from ..svm.problem import MarginProblem
from ..svm.sets import label_svm, relaxed_problem
from ..svm.solver import solve
from .figure import Table, Tables, table
from .look import BLACK, BLUE, GREEN, GREY, ORANGE, RED, Style, plane, ray, sheet, tokens, walk
from .tables import states

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing


START = (np.array([-1.0, 0.0]), np.array([0.0, -1.0]))  # v, p
PUBLISHED = Normalised(0.1, floor=(1e-9, 1e-19))  # the floors of published code, of v and of p


def tables_of(third: tuple[float, float], balls: list[tuple[float, float]], small: bool) -> Tables:
    """Runs without and with the published floors, the path over balls, and the answers, where the third star is so."""
    problem = joint(third)
    return {
        "run": run_of(problem, Normalised(0.1)),
        "floor": run_of(problem, PUBLISHED),
        "path": path_angles(problem, balls, 4 if small else 12),
        "answer": answers(problem),
    }


def run_of(problem: JointProblem, step: Normalised, steps: int = 1000) -> Table:
    """One run: v, p, the mean attention on the second tokens, the mean probability of the labels."""
    seen = list(states(problem, step, START, steps).values())
    v, p = np.array([one.blocks[0] for one in seen]), np.array([one.p for one in seen])
    return table(
        t=[one.t for one in seen],
        p1=p[:, 0],
        p2=p[:, 1],
        v1=v[:, 0],
        v2=v[:, 1],
        degrees=list(map(angle, p)),
        attention=[one.reading.attention[1::2].mean() for one in seen],
        probability=[np.mean(1 / (1 + np.exp(-one.reading.margins))) for one in seen],
    )


def answers(problem: JointProblem) -> Table:
    """v_mm, p_mm and the relaxed p of the second tokens; what is a support vector, and the label margins."""
    second = problem.keys.starts[:-1] + 1
    head = label_svm(problem.values.rows[second], problem.labels)
    every = solve(MarginProblem.from_selection(problem.keys, [1, 1, 1])).p
    relaxed = solve(relaxed_problem(problem.keys, [1, 1, 1], head.support)).p
    margins = problem.labels * (problem.values.rows[second] @ head.p)
    return table(
        name=["v_mm", "p_mm", "p_relaxed", "least and largest label margin"],
        x=[head.p[0], every[0], relaxed[0], margins.min()],
        y=[head.p[1], every[1], relaxed[1], margins.max()],
    )


def path_angles(problem: JointProblem, balls: list[tuple[float, float]], starts: int = 12) -> Table:
    """Degrees of p on the joint regularisation path, |v| <= r and |p| <= R."""
    found = [angle(joint_path(problem, [R], r / R, starts)[0].p) for r, R in balls]
    return table(r=[r for r, _ in balls], R=[R for _, R in balls], degrees=found)


def draw_joint(
    tables: Tables, third: tuple[float, float], lines: list[tuple[float, str, Style]], place: tuple[float, float]
) -> Drawing:
    """Left the paths of p and v, right the angle of p; `lines` are the directions of p in degrees.

    `place` is where the name of the token (1, −1) stands beside it, out of the way of the path.
    """
    drawing, (left, right) = sheet(2, 4.0)
    run, floor, path = tables["run"], tables["floor"], tables["path"]
    early = run["t"] <= 200
    ray(left, np.array([0.0, 1.0]), Style(BLACK, ":", ""), "max-margin direction of v")
    for degrees, name, style in lines:
        turn = np.radians(degrees)
        ray(left, np.array([np.cos(turn), np.sin(turn)]), style, name)
        right.axhline(degrees, **style.line, linewidth=1.2, label=name)
    walk(left, run["p1"][early], run["p2"][early], Style(BLUE, "-", "o"), "p")
    walk(left, run["v1"][early], run["v2"][early], Style(ORANGE, "-", "s"), "v")
    names = [f"({x:g}, {y:g})" for x, y in ((1, 1), (1, -1), third)]
    places = [(8.0, 3.0), place, (-16.0, 7.0)]
    tokens(left, _keys(third), [name.replace("-", "−") for name in names], places)
    plane(left, (-1.6, -2.4), (6.2, 5.2))
    left.set_xlabel("first coordinate")
    left.set_ylabel("second coordinate")
    left.legend(loc="upper right")
    late = run["t"] >= 20
    norm = {name: np.hypot(one["p1"], one["p2"])[late] for name, one in (("run", run), ("floor", floor))}
    right.semilogx(norm["run"], run["degrees"][late], color=BLUE, label="descent, exact")
    stop = {"marker": "X", "markevery": [-1], "markersize": 8}
    right.semilogx(
        norm["floor"], floor["degrees"][late], color=RED, linestyle="-.", **stop, label="with a floor: stops"
    )
    square = path["r"] == path["R"]
    right.plot(
        path["R"][square], path["degrees"][square], "D", color=GREEN, markersize=6, label="best for |v|, |p| ≤ R"
    )
    if (~square).any():
        right.plot(
            path["R"][~square], path["degrees"][~square], "P", color=GREY, markersize=7, label="other bounds of |v|"
        )
    right.set_xlabel("|p|")
    right.set_ylabel("angle of p, degrees")
    return drawing


def _keys(third: tuple[float, float]) -> Vector:
    return np.array([(1.0, 1.0), (1.0, -1.0), third])
