"""Head and attention trained together: where the minima of L over |v| <= r, |p| <= R go, with explicit constants.

A selection takes a token r_i of each input. v_mm is the max-margin head of the Y_i r_i, Gamma = 1/|v_mm| its margin, u
its direction, Gamma_i = Y_i u'r_i >= Gamma the margin of input i, S the inputs with Gamma_i = Gamma. All other tokens
are no longer than beta < Gamma. Gamma u = sum_i w_i Y_i r_i with weights w >= 0 that sum to 1.

1. If at (v, p) with |v| <= 1 every input has margin at least m > beta, and attention s_i on its selected token, then
   Y_i v'r_i >= beta + (m - beta)/s_i. The mean with weights w gives Gamma v'u >= beta + (m - beta) sum_i w_i / s_i. So
   m <= Gamma - (Gamma - beta) w_i (1 - s_i), which is Assumption C on S with nu = (Gamma - beta) min_S max_w w_i; and
   v'u >= m / Gamma.
2. A minimum (v, p) has no more loss than (r u, R u_p), for any unit u_p. So every margin is at least mu, the inverse of
   the loss at n times that one. By 1., cos(v, u) >= mu / (r Gamma), and the scores g_i = Y_i v'r_i >= mu are the best.
3. With this v, p is no worse than R u_p. Beyond sum_i loss(g_i)/n the loss is, for each i, at least |loss'(g_i)| (g_i -
   r beta) q_i / n with q_i = 1 - s_i >= 1/(1 + exp(m_i)), m_i the attention margin of input i. At R u_p it is at most
   max_k exp(-g_k + delta_k) delta_k, delta_k = (g_k + r beta) (T_k - 1) exp(-m_k). So each m_i of p has a lower bound.
4. With rows and multipliers of a max-margin problem, u_p = sum lam_j a_j: cos(p, u_p) >= sum lam_j (bound of j) / R.

|loss'(g_i)| falls like exp(-r Gamma_i): an input off the margin counts less by exp(-r (Gamma_i - Gamma)). So for r/R =
ratio, u_p is the unit vector with the largest z such that input i has attention margin z - ratio (Gamma_i - Gamma), or
0 if that is negative. With all inputs in S it is the max-margin direction; with a large ratio it is the relaxed one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import brentq, linprog, minimize

from ..core.bags import Index, Vector
from ..core.selection_loss import JointProblem, scores_of
from ..svm import MarginProblem, MarginSolution, label_svm, relaxed_problem, solve

__all__ = ["JointLimit"]

ON_MARGIN = 1e-6  # inputs whose label margin exceeds the least one by no more, relatively, support the head


@dataclass(frozen=True, eq=False)
class JointLimit:
    """The limits that belong to a selection and to r / R, for the logistic loss."""

    problem: JointProblem
    selection: Index  # one token of each bag
    ratio: float = 1.0  # r / R

    # the head

    @cached_property
    def chosen(self) -> Vector:
        """(n, d) Y_i r_i."""
        values = self.problem.values
        return self.problem.labels[:, None] * values.rows[values.chosen(self.selection)]

    @cached_property
    def head(self) -> MarginSolution:
        """v_mm."""
        return label_svm(self.problem.labels[:, None] * self.chosen, self.problem.labels)

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
    def strict(self) -> MarginSolution:
        """p_mm: all rows ask for 1."""
        return solve(MarginProblem.from_selection(self.problem.keys, self.selection))

    @cached_property
    def relaxed(self) -> MarginSolution:
        """p_relax: rows of inputs off the margin ask for 0."""
        return solve(relaxed_problem(self.problem.keys, self.selection, self.support))

    @cached_property
    def tokens(self) -> Index:
        """(m, 2) input and token of each row."""
        names = MarginProblem.from_selection(self.problem.keys, self.selection).names
        return np.zeros((0, 2), np.intp) if names is None else names

    @cached_property
    def rows(self) -> Vector:
        """(m, d) a_it = k_selected - k_t."""
        return MarginProblem.from_selection(self.problem.keys, self.selection).rows(np.arange(len(self.tokens)))

    @cached_property
    def attention(self) -> MarginSolution:
        """u_p."""
        least, most = self.strict.margin, self.relaxed.margin
        if most - least <= 1e-12 * most or self._asking(most).norm <= 1 + 1e-12:
            return self._asking(most)
        if self._asking(least).norm >= 1:  # by rounding: all rows ask for z at most
            return self._asking(least)
        return self._asking(float(brentq(lambda z: self._asking(z).norm - 1, least, most, xtol=1e-13)))

    def _asking(self, z: float) -> MarginSolution:
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
        """(n,) lower bounds of the attention margins, whatever the head is that step 2 allows."""
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
