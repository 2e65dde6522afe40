"""Head and attention trained together: where the minima of L over |v| <= r, |p| <= R go, with explicit constants.

A selection takes a token r_i of each input. v_mm is the max-margin head of the Y_i r_i, Gamma = 1/|v_mm| its margin, u
its direction, Gamma_i = Y_i u'r_i >= Gamma the margin of input i, S the inputs with Gamma_i = Gamma. All other tokens
are no longer than beta < Gamma. Gamma u = sum_i w_i Y_i r_i with weights w >= 0 that sum to 1. u_p is the limit of p.

How near every minimum is to its limit is proved, in four steps that `docs/proofs.md` has under mm.thm5, and no search
for the global one has to be trusted. These constants are ours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from scipy.optimize import brentq, linprog, minimize

from ....model.ragged import Bags, Index, Vector, softmax
from ...problems.geometry import misalignment
from ...problems.losses import Logistic
from ...problems.problem import Problem
from ...problems.scores import scores_of
from ...selection import separable
from ...svm.problem import MarginProblem
from ...svm.sets import label_svm, relaxed_problem
from ...svm.solution import Solution
from ...svm.solver import solve, solved
from .. import instances as known
from ..claim import Counter, Hypothesis, claim
from .assumptions import leaning

ON_MARGIN = 1e-6  # inputs whose label margin exceeds the least one by no more, relatively, support the head


@dataclass(frozen=True, eq=False)
class JointLimit:
    """The limits that belong to a selection and to r / R, for the logistic loss."""

    problem: Problem
    selection: Index  # one token of each bag
    ratio: float = 1.0  # r / R
    said: float | None = None  # the r / R that the limit is said to belong to, if it is another one

    # the head

    @cached_property
    def chosen(self) -> Vector:
        """(n, d) Y_i r_i."""
        values = self.problem.values
        return self.problem.labels[:, None] * values.rows[values.chosen(self.selection)]

    @cached_property
    def head(self) -> Solution:
        """v_mm."""
        return solve(MarginProblem.from_rows(self.chosen))

    @property
    def margin(self) -> float:
        """Gamma."""
        return self.head.margin

    @property
    def unit(self) -> Vector:
        """u."""
        return self.head.p * self.head.margin

    @cached_property
    def margins(self) -> Vector:
        """(n,) Gamma_i."""
        return self.chosen @ self.unit

    @cached_property
    def support(self) -> Index:
        """S, as indices of inputs."""
        return np.flatnonzero(self.margins <= self.margin * (1 + ON_MARGIN))

    @cached_property
    def longest(self) -> float:
        """beta."""
        values = self.problem.values
        rest = np.delete(values.rows, values.chosen(self.selection), axis=0)
        return float(np.linalg.norm(rest, axis=1).max(initial=0.0))

    @cached_property
    def weights(self) -> Vector:
        """(n,) the largest w_i that Gamma u = sum_j w_j Y_j r_j allows, for each i by itself; 0 off the margin."""
        n = len(self.chosen)
        equal = np.vstack([self.chosen.T / self.margin, np.ones(n)])
        right = np.append(self.unit, 1.0)
        found = np.zeros(n)
        for i in self.support:
            answer = linprog(-np.eye(n)[i], A_eq=equal, b_eq=right).x
            found[i] = 0.0 if answer is None else answer[i]
        return found

    @property
    def nu(self) -> float:
        """The constant of Assumption C on the supporting inputs; positive means that it is established."""
        return (self.margin - self.longest) * float(self.weights[self.support].min())

    # attention

    @cached_property
    def strict(self) -> Solution:
        """p_mm: all rows ask for 1."""
        return solve(self._contest)

    @cached_property
    def relaxed(self) -> Solution:
        """p_relax: rows of inputs off the margin ask for 0."""
        return solve(relaxed_problem(self.problem.keys, self.selection, self.support))

    @cached_property
    def _contest(self) -> MarginProblem:
        return MarginProblem.from_selection(self.problem.keys, self.selection)

    @property
    def tokens(self) -> Index:
        """(m, 2) input and token of each row."""
        assert self._contest.names is not None
        return self._contest.names

    @cached_property
    def rows(self) -> Vector:
        """(m, d) a_it = k_selected - k_t."""
        return self._contest.rows(np.arange(len(self._contest)))

    @cached_property
    def attention(self) -> Solution:
        """u_p."""
        least, most = self.strict.margin, self.relaxed.margin
        if most - least <= 1e-12 * most or self._asking(most).norm <= 1 + 1e-12:
            return self._asking(most)
        if self._asking(least).norm >= 1:  # by rounding: all rows ask for z at most
            return self._asking(least)
        return self._asking(float(brentq(lambda z: self._asking(z).norm - 1, least, most, xtol=1e-13)))

    def _asking(self, z: float) -> Solution:
        """The shortest p where input i has attention margin z - ratio (Gamma_i - Gamma), or 0."""
        asked = np.maximum(z - self.ratio * (self.margins - self.margin), 0.0)
        return solve(MarginProblem.from_rows(self.rows, asked[self.tokens[:, 0]]))

    @property
    def least_ratio(self) -> float:
        """From this r / R on u_p is the relaxed direction."""
        off = np.setdiff1d(np.arange(len(self.margins)), self.support)
        z = self.relaxed.margin
        missing = z - self.attention_margins(self.relaxed.p * z)[off]
        return float((missing / (self.margins[off] - self.margin)).max(initial=0.0))

    def attention_margins(self, p: Vector) -> Vector:
        """(n,) the least a_it'p of each input."""
        least = np.full(len(self.margins), math.inf)
        np.minimum.at(least, self.tokens[:, 0], self.rows @ p)
        return least

    def selects(self, p: Vector) -> bool:
        """Whether p selects the token of every input, alone in the lead."""
        return bool((self.attention_margins(p) > 1e-6 * np.linalg.norm(p)).all())

    # far out

    def proved(self, R: float) -> tuple[float, float]:
        """1 - cos of v and of p to their limits that no minimum exceeds; 2 where nothing is proved."""
        r, limit = self.ratio * R, self.attention
        reading = self.problem.read((r * self.unit, R * limit.p))
        log_loss = self.problem.gap(reading).log + math.log(len(self.margins))
        mu = -log_loss if log_loss < -30 else -math.log(math.expm1(math.exp(log_loss)))
        mu -= 1e-14 * abs(mu)  # rounding
        if mu <= r * self.longest:
            return 2.0, 2.0
        cosine = min(mu / (r * self.margin), 1.0)
        least = self._least_margins(R, mu, math.sqrt(1 - cosine**2))
        tight = limit.lam > 0
        return 1 - cosine, min(2.0, 1 - float(limit.lam[tight] @ least[self.tokens[tight, 0]]) / R)

    def _least_margins(self, R: float, mu: float, sine: float) -> Vector:
        """(n,) lower bounds of the attention margins, whatever the head is that step 2 of the proof allows."""
        r, beta = self.ratio * R, self.longest * self.ratio * R
        across = self.chosen - self.margins[:, None] * self.unit
        wide = r * sine * np.linalg.norm(across, axis=1)
        high = r * self.margins + wide
        low = np.maximum(mu, mu * self.margins / self.margin - wide)
        log_delta = np.log((high + beta) * (self.problem.keys.sizes - 1))
        log_delta -= self.attention_margins(R * self.attention.p)
        # g_k - g_i at [i, k]
        ahead = self.margins[None] - self.margins[:, None]
        apart = np.linalg.norm(across[None] - across[:, None], axis=2)
        difference = np.where(ahead > 0, mu / self.margin, r) * ahead - r * sine * apart
        certain = (difference - log_delta - np.exp(np.minimum(log_delta, 700.0))).min(axis=1)
        by_loss = _log_expm1(certain + np.log((low - beta) / len(low)) - np.log1p(np.exp(-low)))
        # margin i: s_i g_i + (1 - s_i) r beta >= mu, so s_i has a lower bound too
        share = (mu - beta) / (high - beta)
        return np.maximum(by_loss, np.log(share) - np.log1p(-share))

    def settled(self, R: float, rounds: int = 2) -> tuple[Vector, Vector]:
        """(v, p) of lengths r and R where neither alone can do better, far out, where log L has no digits left for p.

        With the selected tokens far ahead, the loss beyond sum_i loss(g_i)/n is sum_it exp(-g_i) (g_i - gamma_it)
        exp(-a_it'p) / n but for a factor 1 + O(r exp(-margin)): convex in p, as the loss is in v. Each in turn.
        """
        problem, values, bag = self.problem, self.problem.values, self.tokens[:, 0]
        v = self.ratio * R * self.unit
        for _ in range(rounds):
            scores = scores_of(problem.labels, values, v)
            lead = scores[values.chosen(self.selection)][bag]
            behind = lead - scores[values.starts[bag] + self.tokens[:, 1]]
            p = _lowest(self.rows, np.log(behind) - lead, R)
            attention = problem.read((v, p)).attention
            features = problem.labels[:, None] * values.sum(attention[:, None] * values.rows)
            v = _lowest(features, np.zeros(len(features)), self.ratio * R)
        return v, p


def _log_expm1(x: Vector) -> Vector:
    """log(exp(x) - 1); -inf for x <= 0."""
    positive = np.maximum(x, 1e-300)
    return np.where(x > 0, positive + np.log(-np.expm1(-positive)), -math.inf)


def _lowest(rows: Vector, offsets: Vector, radius: float) -> Vector:
    """The x of length R with the least log sum exp(offset - row'x), for rows that some direction separates from 0."""

    def height(w: Vector) -> tuple[float, Vector]:
        size = float(np.linalg.norm(w))
        unit = w / size
        logs = offsets - radius * (rows @ unit)
        value = float(np.logaddexp.reduce(logs))
        slope = -np.exp(logs - value) @ rows
        return value / radius, (slope - (slope @ unit) * unit) / size

    begin = solve(MarginProblem.from_rows(rows)).p
    found = minimize(height, begin / np.linalg.norm(begin), jac=True, method="BFGS", options={"gtol": 1e-10})
    return np.asarray(radius * found.x / np.linalg.norm(found.x), np.float64)


PAPER, OURS = "Max-Margin Token Selection", "keytokens, after Max-Margin Token Selection"


# --- Assumption C: attention elsewhere costs label margin -------------------------------------------------------------


def label_margin(labels: Vector, values: Bags, attention: Vector) -> float:
    """max over unit v of min_i Y_i v'(X_i's_i), or 0 if no v is right on every input."""
    found = solved(label_svm, values.sum(attention[:, None] * values.rows), labels)
    return 0.0 if found is None else found.margin


def _attentions(values: Bags, selection: Index, rng: np.random.Generator) -> list[Vector]:
    """Random ones of every sharpness; even; the selected tokens with a little elsewhere, in all inputs or in one."""
    lead = np.zeros(len(values.rows))
    lead[values.chosen(selection)] = 1.0
    logits = [rng.normal(size=len(lead)) * 10 ** rng.uniform(-1, 1.5) for _ in range(8)]
    logits += [np.zeros(len(lead)), 3 * lead, 8 * lead, 40 * lead]
    for i in range(len(values)):
        mine = values.bag == i
        logits += [np.where(mine, x, 40.0) * lead + np.where(mine, rng.normal(size=len(lead)), 0.0) for x in (1.0, 6.0)]
    return [softmax(values, a) for a in logits]


# --- joint training --------------------------------------------------------------------------------------------------


def _trained(rng: np.random.Generator, off: bool) -> JointLimit:
    """Selected tokens Y_i r_i = Gamma_i u + (across u), on the margin in balance; other tokens shorter than Gamma.

    Without `off` all inputs are on the margin, and in every third instance all of them have Y_i r_i = a.
    """
    n, T, d = int(rng.integers(2, 5)), int(rng.integers(2, 4)), int(rng.integers(2, 4))
    on = n if not off else max(1, n - int(rng.integers(1, n)))
    u, gamma = rng.normal(size=d), rng.uniform(0.5, 2.0)
    u /= np.linalg.norm(u)
    across = rng.normal(size=(n, d)) * (0.0 if rng.random() < 1 / 3 else 1.0)
    across -= np.outer(across @ u, u)
    weights = rng.uniform(0.2, 1.0, on)
    across[:on] -= weights @ across[:on] / weights.sum()
    sizes = np.where(np.arange(n) < on, gamma, gamma * (1 + rng.uniform(0.2, 1.0, n)))
    labels, selection = rng.choice([-1.0, 1.0], n), rng.integers(0, T, n)
    others = rng.normal(size=(n, T, d))
    x = gamma * rng.uniform(0.05, 0.8, (n, T, 1)) * others / np.linalg.norm(others, axis=2, keepdims=True)
    x[np.arange(n), selection] = labels[:, None] * (sizes[:, None] * u + across)
    keys = rng.normal(size=(n, T, n * (T - 1) // 2 + 2))
    problem = Problem.joint(labels, Bags.of(x), Bags.of(keys))
    return JointLimit(problem, selection, float(10 ** rng.uniform(-0.5, 0.5)))


def _established(one: JointLimit) -> bool | None:
    """Assumption C on the supporting inputs; a weight that the linear program cannot tell from 0 decides nothing."""
    return True if one.nu > 1e-6 * one.margin else None


SMALL, LARGE, PROVED = 30.0, 1e5, 1e14  # least attention margins at the limit, radii R in their units


def _ends_at(one: JointLimit, target: Vector) -> float:
    """Found (v, p) no further than is proved of every minimum, found and proved ones near their limits far out."""
    size = 1 / float(one.attention_margins(one.attention.p).min())
    beyond, away = [], 2.0
    for R in (SMALL * size, LARGE * size):
        v, p = one.settled(R)
        of_v, of_p = one.proved(R)
        beyond += [misalignment(v, one.unit) - of_v, misalignment(p, one.attention.p) - of_p]
        away = max(misalignment(v, one.unit), misalignment(p, target))
    # What is proved falls like 1/sqrt(R): to a tenth of this at 100 times the radius, where rounding would hide it.
    return max(*beyond, away, *(bound / 10 for bound in one.proved(PROVED * size)))


def _figure(third: tuple[float, float], ratio: float = 1.0, **said: float) -> JointLimit:
    """Fig 3(a) with third = (0.5, 1), Fig 3(b) with third = (0.5, 1.5)."""
    return JointLimit(known.joint(third), np.array([1, 1, 1]), ratio, **said)


def _off_the_margin(rng: np.random.Generator) -> JointLimit:
    """Some inputs off the margin, and p_relax selects their tokens although it asks for nothing; r / R large enough."""
    while True:
        one = _trained(rng, off=True)
        if _SEPARABLE.holds(one) and _RELAXED_SELECTS.holds(one):
            return replace(one, ratio=max(one.least_ratio * rng.uniform(1.05, 2.0), one.ratio))


def _any_ratio(rng: np.random.Generator) -> JointLimit:
    """Some inputs off the margin, any r / R for which the limit selects all tokens."""
    while True:
        one = _trained(rng, off=True)
        if _SEPARABLE.holds(one) and _LIMIT_SELECTS.holds(one):
            return one


def _long_zero() -> JointLimit:
    """Fig 3(a) with tokens (0, 2 Y_i) in the place of the zero tokens."""
    before = known.joint((0.5, 1.0))
    rows = before.values.rows.copy()
    rows[before.values.starts[:-1], 1] = 2 * before.labels
    return JointLimit(Problem.joint(before.labels, before.values.with_rows(rows), before.keys), np.array([1, 1, 1]))


_LOGISTIC = Hypothesis[JointLimit]("the loss is logistic", lambda one: isinstance(one.problem.loss, Logistic))
_SEPARABLE = Hypothesis[JointLimit](
    "attention can select the tokens", lambda one: separable(one.problem.keys, one.selection)
)
_CONDITION = Hypothesis[JointLimit](
    "Assumption C, since every input has weight in the max-margin head and other tokens are shorter than its margin",
    lambda one: len(one.support) == len(one.margins) and _established(one),
)
_SHORT = Hypothesis[JointLimit](
    "all other tokens are shorter than the label margin", lambda one: one.longest < one.margin
)
_CONDITION_ON_S = Hypothesis[JointLimit]("Assumption C on the supporting inputs, by the same condition", _established)
_RELAXED_SELECTS = Hypothesis[JointLimit](
    "the relaxed direction selects the tokens of all inputs", lambda one: one.selects(one.relaxed.p)
)
_LIMIT_SELECTS = Hypothesis[JointLimit](
    "the limit selects the tokens of all inputs", lambda one: one.selects(one.attention.p)
)
_SAID = Hypothesis[JointLimit]("the limit is that of the r / R of the path", lambda one: one.said in (None, one.ratio))
_RATIO = Hypothesis[JointLimit](
    "r / R is at least (1/|p_relax| - attention margin) / (label margin - Gamma) of every input off the margin",
    lambda one: one.ratio >= one.least_ratio * (1 - 1e-9),
)


# --- the claims -------------------------------------------------------------------------------------------------------


@claim(
    "mm.assumption-c",
    says="With margin Gamma of the head on the selected tokens, all others no longer than beta < Gamma, and weight "
    "w_i of input i in that head, attention 1 - s_i elsewhere costs the label margin at least (Gamma - beta) w_i "
    "(1 - s_i). Where all selected tokens are Y_i a, as in the paper's example, w_i = 1 and Gamma = |a|.",
    source=f"{OURS}, Assumption C",
    constant="the weights",
    hypotheses=(_SHORT,),
    tolerance=1e-7,  # the weights come from a linear program that is solved to this
    draw=lambda rng: _trained(rng, off=bool(rng.integers(2))),
    seeds=40,
    known=(partial(_figure, (0.5, 1.0)), partial(_figure, (0.5, 1.5))),
    counters=(Counter("tokens longer than the margin", _SHORT.says, _long_zero),),
)
def _tight_margin(one: JointLimit, by: float = 1.0) -> float:
    """margin <= Gamma - (Gamma - beta) w_i (1 - s_i) for every input i, and never above Gamma."""
    values, worst = one.problem.values, -math.inf
    for attention in _attentions(values, one.selection, np.random.default_rng(0)):
        elsewhere = 1 - attention[values.chosen(one.selection)]
        cost = (one.margin - one.longest) * by * one.weights * elsewhere
        bound = one.margin - max(0.0, float(cost.max()))
        worst = max(worst, (label_margin(one.problem.labels, values, attention) - bound) / one.margin)
    if np.ptp(one.chosen, axis=0).max() == 0:  # the example of the paper: all Y_i r_i are a
        size = float(np.linalg.norm(one.chosen[0]))
        worst = max(worst, float(np.abs(one.weights - 1).max()), abs(one.margin / size - 1))
    return worst


@claim(
    "mm.thm5",
    says="Trained together within growing balls, the head turns to the max-margin head of the selected tokens and "
    "p to their max-margin direction, if attention elsewhere costs every input label margin.",
    source=f"{PAPER}, Theorem 5",
    hypotheses=(_LOGISTIC, _SEPARABLE, _CONDITION),
    tolerance=1e-5,  # found at 1e5 |p_mm|: 1/R^2 or less; proved far beyond
    constant="the 1 by which each selected token is to stand above the others: of the first",
    draw=lambda rng: _trained(rng, off=False),
    seeds=25,
    known=(partial(_figure, (0.5, 1.0)),),
    counters=(Counter("Fig 3(b), third input off the margin", _CONDITION.says, partial(_figure, (0.5, 1.5))),),
    notes="r / R between 0.3 and 3. How near every minimum is, is ours.",
)
def _at_the_strict(one: JointLimit, by: float = 1.0) -> float:
    return _ends_at(one, solve(leaning(one.strict.problem, by)).p)


@claim(
    "mm.thm6",
    says="Where some inputs are off the label margin, p turns to the relaxed max-margin direction, in which these "
    "inputs ask for no margin, and the head to the max-margin head.",
    source=f"{PAPER}, Theorem 6",
    hypotheses=(_LOGISTIC, _SEPARABLE, _CONDITION_ON_S, _RELAXED_SELECTS, _RATIO),
    tolerance=1e-5,
    constant="the 1 by which each selected token is to stand above the others: of the first",
    draw=_off_the_margin,
    seeds=25,
    known=(partial(_figure, (0.5, 1.5)), partial(_figure, (0.5, 1.5), 3.0)),
    counters=(Counter("Fig 3(b) with r / R = 1/3", _RATIO.says, partial(_figure, (0.5, 1.5), 1 / 3)),),
    notes="The condition on r / R is ours: the limit of p depends on it (mm.joint-ratio).",
)
def _at_the_relaxed(one: JointLimit, by: float = 1.0) -> float:
    return _ends_at(one, solve(leaning(one.relaxed.problem, by)).p)


@claim(
    "mm.joint-ratio",
    says="For r / R = ratio, p turns to the unit vector with the largest z such that every input has attention "
    "margin z - ratio (label margin - Gamma), or 0 if that is negative. For Fig 3(b) its angle solves cos - 5 sin "
    "= ratio, up to ratio 1.",
    source=f"{OURS}, Theorem 6",
    hypotheses=(_LOGISTIC, _SEPARABLE, _CONDITION_ON_S, _LIMIT_SELECTS, _SAID),
    tolerance=1e-5,
    constant="the ratio",
    draw=_any_ratio,
    seeds=25,
    known=tuple(partial(_figure, (0.5, 1.5), ratio) for ratio in (0.1, 1 / 3, 0.7)),
    counters=(
        Counter(
            "the limit of a ratio larger by a tenth", _SAID.says, partial(_figure, (0.5, 1.5), 1 / 3, said=1.1 / 3)
        ),
    ),
)
def _at_the_ratio(one: JointLimit, by: float = 1.0) -> float:
    return _ends_at(one, replace(one, ratio=by * (one.said or one.ratio)).attention.p)
