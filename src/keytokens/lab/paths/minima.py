"""Local minima on balls, followed as the balls grow: |block| <= its radius, for one block p or for v and p.

Far out L differs from its infimum L* by exp(-R margin), so log(L - L*) is minimised, not L: it falls like -R margin
whatever R is, and its gradient is that of L divided by L - L*, both known in the log domain.

Two traps. In large balls attention is saturated almost everywhere and nothing points to the minimum: so random starts
begin in small balls, where tokens share attention, and are followed outward. And beside what v does to log L,
what p does is exp(-R), below rounding: so each block's descent is made to vanish in its own scale, by Newton's method.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.optimize import minimize

from ...model.ragged import Vector
from ..problems.problem import Problem
from ..problems.reading import Blocks, Reading

Radii = tuple[float, ...]

ON_THE_SPHERE = 1e-9  # a block that is shorter than its radius by more, relatively, lies inside
ROUNDING = 1e-9  # of log(L - L*), relative
SAME = 1e-4  # minima that differ by less, beside the radii, are one
STATIONARY, AIM = 1e-8, 1e-13  # a residual that is small enough; Newton's method goes on to the other
EPS = float(np.finfo(np.float64).eps)
STEP = 1e-5  # of a logit, for differences of gradients
ROUGH = 1e-9  # of the objective, where Newton's method takes over
MOST_HALVINGS = 8
MOST_DIMENSIONS = 300  # for Newton's method
MOST_KEPT = 4  # minima that are followed from ball to ball
GROWTH, LEAST_GROWTH = 7.0, 1.3  # from ball to ball; and where a step is not divided again


class BelowLimit(Exception):
    """Blocks where L < L*: what was taken for the infimum is none."""


def norm(x: Vector) -> float:
    return float(np.sqrt(x @ x))


@dataclass(frozen=True, eq=False)
class Place:
    """Blocks within their balls, and what the loss says there."""

    problem: Problem
    radii: Radii
    blocks: Blocks

    @classmethod
    def on_spheres(cls, problem: Problem, radii: Radii, directions: Blocks) -> Place:
        return cls(problem, radii, tuple(r * x / (norm(x) or 1.0) for r, x in zip(radii, directions, strict=True)))

    def within(self, radii: Radii) -> Place:
        """In other balls: a block that was on its sphere is on the new one."""
        parts = zip(self.radii, radii, self.blocks, strict=True)
        moved = tuple(x if inside(x, old) and inside(x, r) else r * x / norm(x) for old, r, x in parts)
        return Place(self.problem, radii, moved)

    @cached_property
    def reading(self) -> Reading:
        return self.problem.read(self.blocks)

    @cached_property
    def value(self) -> float:
        """log(L - L*)."""
        gap = self.problem.gap(self.reading)
        if gap.sign < 0:
            raise BelowLimit(self.blocks)
        return gap.log

    @cached_property
    def descents(self) -> list[tuple[Vector, float]]:
        """-grad log(L - L*) block by block: a unit vector, or zeros, and the logarithm of the length."""
        value = self.value
        return [(down.unit, down.log - value) for down in self.problem.descent(self.reading, self.blocks)]

    @cached_property
    def slopes(self) -> Blocks:
        """grad log(L - L*), block by block."""
        return tuple(-unit * math.exp(min(log, 700.0)) for unit, log in self.descents)

    @cached_property
    def residual(self) -> float:
        """The part of the descent that could still be followed within the balls; the largest of the blocks.

        On a sphere: the share of the descent that runs along it; all of it, 1, where it points inside. Inside a ball: R
        times the gradient of log(L - L*). Each block by itself: beside what v does to the loss, what p does is exp(-R).
        """
        worst = 0.0
        for r, block, (unit, log) in zip(self.radii, self.blocks, self.descents, strict=True):
            if inside(block, r):
                worst = max(worst, r * norm(unit) * math.exp(min(log, 700.0)))
            elif unit.any():
                outward = float(unit @ block) / norm(block)
                worst = max(worst, norm(unit - outward * block / norm(block)) if outward > 0 else 1.0)
        return worst

    @property
    def excess(self) -> float:
        """log of L minus the loss with all attention on the best tokens: tells p apart where log L cannot."""
        return self.reading.excess(self.reading.best).log if len(self.blocks) > 1 else self.value


def inside(block: Vector, radius: float) -> bool:
    return norm(block) < radius * (1 - ON_THE_SPHERE)


def _no_higher(value: float) -> float:
    return value + ROUNDING * (1 + abs(value)) if value > -math.inf else value


# From anywhere: L-BFGS ---------------------------------------------------------------------------------------------


def _lowered(at: Place, free: tuple[bool, ...]) -> Place:
    """A local minimum with every block on its sphere: block = r u / |u|, u free, objective divided by the radius.

    Blocks that are `free` may have any length: block = r u.
    """
    problem, radii, start = at.problem, at.radii, at.blocks
    ends = np.cumsum([len(block) for block in start])[:-1]
    scale = max(1.0, *radii)

    def place(u: Vector) -> tuple[list[Vector], list[float], Place]:
        parts = np.split(u, ends)
        sizes = [1.0 if any_length else norm(part) or 1.0 for part, any_length in zip(parts, free, strict=True)]
        blocks = tuple(r * part / size for r, part, size in zip(radii, parts, sizes, strict=True))
        return parts, sizes, Place(problem, radii, blocks)

    def objective(u: Vector) -> tuple[float, Vector]:
        parts, sizes, there = place(u)
        turned = [
            r * slope if any_length else r / size * (slope - (slope @ part) * part / size**2)
            for r, size, slope, part, any_length in zip(radii, sizes, there.slopes, parts, free, strict=True)
        ]
        return there.value / scale, np.concatenate(turned) / scale

    units = np.concatenate([block / r for block, r in zip(start, radii, strict=True)])
    last = 0.0 if len(units) > MOST_DIMENSIONS else ROUGH
    found = minimize(
        objective, units, jac=True, method="L-BFGS-B", options={"maxfun": 500, "ftol": last, "gtol": 1e-12}
    )
    return place(found.x)[2]


def lowered(at: Place) -> Place:
    """The minimum that a descent finds: on the spheres, then with the blocks inside that the descent pulls there."""
    found = _lowered(at, (False,) * len(at.radii))
    free = tuple(float(slope @ block) > 0 for slope, block in zip(found.slopes, found.blocks, strict=True))
    if any(free):
        inner = tuple((0.99 if inward else 1.0) * block for block, inward in zip(found.blocks, free, strict=True))
        lower = _lowered(replace(found, blocks=inner), free)
        if all(norm(x) <= r for x, r, inward in zip(lower.blocks, found.radii, free, strict=True) if inward):
            return lower if lower.value < found.value else found
    return found


# From nearby: Newton's method --------------------------------------------------------------------------------------


def newton(at: Place, aim: float = AIM) -> Place:
    """Newton's method for the descent along the spheres, while it gets smaller and the loss no higher.

    The loss may be too flat to show a minimum: then its gradients, each block's in its own scale, have the digits.
    """
    if sum(map(len, at.blocks)) > MOST_DIMENSIONS:
        return at
    aim = max(aim, 4 * EPS * max(reaches(at.problem, at.radii)))  # what the rounding of the logits leaves
    highest = _no_higher(at.value)
    while at.residual > aim:
        nearer = _Chart(at).solved(aim, highest)
        if nearer is at:
            break
        at = nearer
    return at


class _Chart:
    """Coordinates z about a place: on a sphere along its tangents, inside a ball all of them; in units of the radii."""

    def __init__(self, centre: Place) -> None:
        self.centre = centre
        blocks = zip(centre.radii, centre.blocks, strict=True)
        self.frames = [np.eye(len(x)) if inside(x, r) else np.linalg.svd(x[None])[2][1:] for r, x in blocks]
        sizes = [STEP / (far or 1.0) for far in reaches(centre.problem, centre.radii)]
        self.steps = np.repeat(sizes, [len(frame) for frame in self.frames])  # for differences

    def place(self, z: Vector) -> Place:
        at, moved = self.centre, []
        parts = np.split(z, np.cumsum([len(frame) for frame in self.frames])[:-1])
        for r, block, part, frame in zip(at.radii, at.blocks, parts, self.frames, strict=True):
            there = block + r * part @ frame
            on_sphere = len(frame) < len(there) or norm(there) > r
            moved.append(r * there / norm(there) if on_sphere else there)
        return replace(at, blocks=tuple(moved))

    def sideways(self, there: Place) -> Vector:
        """0 at a stationary point: what the residual measures, with directions."""
        parts = []
        for r, block, frame, (unit, log) in zip(there.radii, there.blocks, self.frames, there.descents, strict=True):
            if len(frame) == len(block):
                parts.append(r * unit * math.exp(min(log, 700.0)))
            else:
                parts.append(frame @ (unit - (unit @ block) * block / r**2))
        return np.concatenate(parts)

    def solved(self, aim: float, highest: float) -> Place:
        """As near as one Jacobian leads, that Broyden's rule brings up to date at each step."""
        at, z, here = self.centre, np.zeros(len(self.steps)), self.sideways(self.centre)
        jacobian = self.jacobian(here)
        halvings = MOST_HALVINGS
        while len(z) and at.residual > aim:  # of one number on its sphere nothing can move
            full = np.linalg.lstsq(jacobian, -here, rcond=None)[0]
            moves = (full / 2**k for k in range(halvings))
            trials = ((move, self.place(z + move)) for move in moves)
            better = next((one for one in trials if one[1].residual < at.residual and one[1].value <= highest), None)
            if better is None:
                break
            (move, at), halvings = better, 1  # where a whole step fails now, the Jacobian is to blame
            there = self.sideways(at)
            jacobian += np.outer(there - here - jacobian @ move, move) / (move @ move)
            z, here = z + move, there
        return at

    def jacobian(self, here: Vector) -> Vector:
        ways = np.diag(self.steps)
        return np.array([self.sideways(self.place(way)) - here for way in ways]).T / self.steps


def reaches(problem: Problem, radii: Radii) -> list[float]:
    """For each block the radius times the largest entry of the vectors that it is multiplied with."""
    bags = (problem.values, problem.keys) if problem.rule.shapes else (problem.keys,)
    return [r * float(np.abs(one.rows).max()) for r, one in zip(radii, bags, strict=True)]


# From ball to ball -------------------------------------------------------------------------------------------------


def grown(at: Place, radii: Radii) -> Place:
    """The minimum in larger balls: in one step where Newton's method finds it, else in two of half the growth."""
    there = newton(at.within(radii), STATIONARY)
    if there.residual <= STATIONARY:
        return there
    if radii[-1] / at.radii[-1] <= LEAST_GROWTH or sum(map(len, at.blocks)) > MOST_DIMENSIONS:
        return newton(lowered(there), STATIONARY)
    middle = tuple(math.sqrt(small * large) for small, large in zip(at.radii, radii, strict=True))
    return grown(grown(at, middle), radii)


def minima(
    problem: Problem, balls: Sequence[Radii], starts: Sequence[Blocks], hints: Sequence[Blocks]
) -> Iterator[Place]:
    """The best minimum found in each ball, one after the other; `hints` are tried in each of them.

    The starts are spread over balls that grow to the first one, from one in which all tokens share attention.
    """
    far = max(1.0, *reaches(problem, balls[0])) if starts else 1.0
    rungs = [*(tuple(share * r for r in balls[0]) for share in _ladder(far)), *balls]
    first = len(rungs) - len(balls)
    kept: list[Place] = []
    for k, radii in enumerate(rungs):
        begin = [*(starts[k :: first + 1] if k <= first else ()), *(hints if k >= first else ())]
        found = [grown(one, radii) for one in kept]
        found += [lowered(Place.on_spheres(problem, radii, directions)) for directions in begin]
        kept = _best([newton(one, AIM if k >= first else STATIONARY) for one in _best(found)])
        if k >= first:
            yield kept[0]
        # where attention has saturated on a wrong token, there is nothing to follow
        kept = [kept[0], *(one for one in kept[1:] if one.residual <= STATIONARY)]


def _ladder(far: float) -> list[float]:
    """Shares of the first ball, from 1/far up."""
    count = math.ceil(math.log(far) / math.log(GROWTH))
    return [float(far ** -(1 - k / count)) for k in range(count)]


def _best(found: list[Place]) -> list[Place]:
    """Minima that differ, the lowest first; of equals the one of the least excess among those that are stationary."""
    highest = _no_higher(min(one.value for one in found))
    lowest = [one for one in found if one.value <= highest]
    rest = sorted((one for one in found if one.value > highest), key=lambda one: one.value)
    kept: list[Place] = []
    for one in sorted(lowest, key=lambda one: (max(one.residual, STATIONARY), one.excess, one.residual)) + rest:
        if len(kept) < MOST_KEPT and not any(_same(one, other) for other in kept):
            kept.append(one)
    return kept


def _same(one: Place, other: Place) -> bool:
    parts = zip(one.radii, one.blocks, other.blocks, strict=True)
    return all(norm(mine - yours) <= SAME * r for r, mine, yours in parts)
