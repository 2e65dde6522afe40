// Fewest tokens that fix the label, fewest whose deletion changes it (keytokens/proof/tokens.py). With two classes both
// are minima, and a flip always is. With more, a sufficient set must beat every rival at once, in units of its
// opposition: greedy, then one pass of deletions, so it is subset-minimal. Its lower bound is the largest two-class
// minimum; only if that does not meet the size, every single token is tried and a linear program solved.

import { leastCoverRelaxed } from "./simplex.js";
import { ROUNDING, beats, fewestDeleted, fewestKept, labelOf, pairsOf, take } from "./votes.js";

const LP_TOLERANCE = 1e-6; // a bound is rounded up only beyond it

/** {tokens, lower, tight}: a subset-minimal set that beats every rival, and a bound below every such set. */
export function leastCover(pairs, least) {
  const required = requirementOf(pairs, least);
  let kept = pruned(required, greedy(required, []));
  const alone = pairs.map(fewestKept);
  let lower = Math.max(least, 0, ...alone.filter(Boolean).map((found) => found.size));
  let tight = alone.some((found) => found === null || found.tight) || hangs(required, kept);
  if (kept.length > 1 && lower <= 1) {
    const one = byOne(required);
    tight ||= one.tight;
    if (one.token < 0) lower = 2;
    else [kept, lower] = [[one.token], 1];
  }
  if (kept.length > lower) {
    const relaxed = relaxation(required, kept);
    if (relaxed) {
      const { x, bound } = relaxed;
      lower = Math.max(lower, Math.ceil(bound - LP_TOLERANCE));
      const start = x.map((_, t) => t).filter((t) => x[t] > LP_TOLERANCE);
      const rounded = pruned(required, greedy(required, start));
      if (rounded.length < kept.length && met(required, rounded)) kept = rounded;
    }
    tight ||= hangs(required, kept);
  }
  return { tokens: kept, lower: Math.min(lower, kept.length), tight };
}

function requirementOf(pairs, least) {
  const T = pairs[0].tokens;
  const opposed = pairs.map((one) => one.against > 0);
  const share = Array.from({ length: T }, () => new Float64Array(pairs.length));
  pairs.forEach((one, r) => {
    one.order.forEach((t, i) => {
      share[t][r] = opposed[r] ? one.support[i] / one.against : 1;
    });
  });
  return {
    share,
    given: pairs.map((one, r) => (opposed[r] ? one.given / one.against : Number(one.given > 0))),
    target: pairs.map((one, r) => (opposed[r] || (one.strict && one.given === 0) ? 1 : 0)),
    strict: pairs.map((one, r) => one.strict && opposed[r]),
    opposed,
    least,
  };
}

function heldBy(required, tokens) {
  const held = new Float64Array(required.given.length);
  for (const t of tokens) for (let r = 0; r < held.length; r++) held[r] += required.share[t][r];
  return held.map((sum, r) => required.given[r] + sum);
}

function meets(required, held, r) {
  return beats(held[r], required.target[r], required.strict[r]);
}

function met(required, tokens) {
  if (tokens.length < required.least) return false;
  const held = heldBy(required, tokens);
  return required.target.every((_, r) => meets(required, held, r));
}

/** What a token brings on its own, nothing counted twice. */
function decisive(required) {
  return required.share.map((row) => row.reduce((sum, x, r) => sum + Math.min(x, required.target[r]), 0));
}

/** Add the token that brings most of what is still missing until every rival is beaten. */
function greedy(required, start) {
  const kept = [...start];
  const taken = new Set(kept);
  while (!met(required, kept) && taken.size < required.share.length) {
    const held = heldBy(required, kept);
    const open = required.target.map((_, r) => !meets(required, held, r));
    const missing = required.target.map((goal, r) => (open[r] ? Math.max(goal - held[r], 0) + ROUNDING : 0));
    const gain = open.some(Boolean)
      ? required.share.map((row) => row.reduce((sum, x, r) => sum + Math.min(x, missing[r]), 0))
      : decisive(required);
    let best = -1;
    gain.forEach((g, t) => {
      if (!taken.has(t) && (best < 0 || g > gain[best])) best = t;
    });
    kept.push(best);
    taken.add(best);
  }
  return kept;
}

/** One pass of deletions, least decisive first; then most decisive first, equal ones in document order. */
function pruned(required, tokens) {
  const worth = decisive(required);
  let kept = [...tokens].sort((i, j) => worth[j] - worth[i] || i - j);
  for (const t of [...kept].reverse()) {
    const rest = kept.filter((one) => one !== t);
    if (met(required, rest)) kept = rest;
  }
  return kept;
}

/** Some comparison around this set is a tie to rounding, or the set does not win. */
function hangs(required, kept) {
  if (!met(required, kept)) return true;
  const around = [kept, ...kept.map((t) => kept.filter((one) => one !== t))];
  return around.some((tokens) =>
    heldBy(required, tokens).some((sum, r) => required.opposed[r] && Math.abs(sum - required.target[r]) <= ROUNDING),
  );
}

/** The most decisive token that beats every rival by itself, -1 if there is none; `tight`: that hangs on rounding. */
function byOne(required) {
  const worth = decisive(required);
  let token = -1;
  let tight = false;
  required.share.forEach((_, t) => {
    const held = heldBy(required, [t]);
    const enough = required.target.map((_, r) => meets(required, held, r));
    const tie = required.target.map((goal, r) => required.opposed[r] && Math.abs(held[r] - goal) <= ROUNDING);
    tight ||= tie.some(Boolean) && enough.every((is, r) => is || tie[r]);
    if (enough.every(Boolean) && (token < 0 || worth[t] > worth[token])) token = t;
  });
  return { token, tight };
}

/** An optimum of: least sum x with 0 <= x <= 1 and, for each rival, sum of x share >= what is missing. */
function relaxation(required, kept) {
  const missing = required.target.map((goal, r) => goal - required.given[r]);
  const asked = missing.map((_, r) => r).filter((r) => missing[r] > LP_TOLERANCE);
  if (!asked.length) return { x: required.share.map(() => 0), bound: 0 };
  const rows = asked.map((r) => required.share.map((row) => Math.min(row[r], missing[r])));
  const bound = asked.map((r, i) => missing[r] - rows[i].reduce((sum, x) => sum + (x < 1e-9 ? x : 0), 0));
  const whole = rows.map((row) => row.map((x) => (x < 1e-9 ? 0 : x)));
  return leastCoverRelaxed(whole, bound, kept);
}

export const NOTHING = { indices: [], size: 0, lower: 0, status: "none", tight: false, labelAfter: null };

export function sufficientTokens(votes) {
  if (votes.tokens === 0 && !votes.hasSink) return NOTHING;
  const pairs = pairsOf(votes);
  if (pairs.length > 1) {
    const found = leastCover(pairs, votes.hasSink ? 0 : 1);
    const size = found.tokens.length;
    const status = size === found.lower ? "minimum" : "subset-minimal";
    return { indices: found.tokens, size, lower: found.lower, status, tight: found.tight, labelAfter: null };
  }
  const one = pairs[0];
  // the document itself wins with all its supporters; where rounding denies it, they are the answer to rounding
  let { size, tight } = fewestKept(one) || { size: one.order.length, tight: true };
  let indices = one.order.slice(0, size);
  if (size === 0 && !one.mayEmpty) {
    size = 1; // nobody opposes: any one token will do, the most decisive one is shown
    indices = one.order.length ? one.order.slice(0, 1) : [0];
  }
  return { indices, size, lower: size, status: "minimum", tight, labelAfter: null };
}

export function flipTokens(votes) {
  const answers = [];
  for (const one of pairsOf(votes)) {
    const found = fewestDeleted(one);
    if (found) answers.push({ ...found, order: one.order });
  }
  if (!answers.length) return NOTHING;
  const best = answers.reduce((least, one) => (one.size < least.size ? one : least));
  const m = best.size;
  const indices = best.order.slice(0, m);
  const tight = answers.some((one) => one.size <= m + 1 && one.tight);
  return { indices, size: m, lower: m, status: "minimum", tight, labelAfter: labelWithout(votes, indices) };
}

/** Class of the rest, which the label is known to have lost: with one rival it is that rival. */
function labelWithout(votes, deleted) {
  if (votes.rivals.length === 1) return votes.rivals[0];
  const gone = new Set(deleted);
  return labelOf(
    take(
      votes,
      votes.logWeight.map((_, t) => t).filter((t) => !gone.has(t)),
    ),
  );
}
