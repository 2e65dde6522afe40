// Sufficient sets against several rivals (keytokens/proof/tokens.py): every rival asks for 1, in units of its
// opposition. Greedy, then one pass of deletions; below it the largest two-class minimum and, only if that does not
// meet the size, a look at every single token and a linear programme.

import { beats, fewestKept } from "./duels.js";
import { leastCoverRelaxed } from "./simplex.js";
import { ROUNDING } from "./votes.js";

const LP_TOLERANCE = 1e-6; // a bound is rounded up only beyond it

/** {tokens, lower, tight}: a subset-minimal set that beats every rival, and a bound below every such set. */
export function leastCover(duels, least) {
  const demand = demandOf(duels, least);
  let kept = pruned(demand, greedy(demand, []));
  const alone = duels.map(fewestKept);
  let lower = Math.max(least, 0, ...alone.filter(Boolean).map((found) => found.size));
  let tight = alone.some((found) => found === null || found.tight) || hangs(demand, kept);
  if (kept.length > 1 && lower <= 1) {
    const one = byOne(demand);
    tight ||= one.tight;
    if (one.token < 0) lower = 2;
    else [kept, lower] = [[one.token], 1];
  }
  if (kept.length > lower) {
    const relaxed = relaxation(demand, kept);
    if (relaxed) {
      const { x, bound } = relaxed;
      lower = Math.max(lower, Math.ceil(bound - LP_TOLERANCE));
      const start = x.map((_, t) => t).filter((t) => x[t] > LP_TOLERANCE);
      const rounded = pruned(demand, greedy(demand, start));
      if (rounded.length < kept.length && met(demand, rounded)) kept = rounded;
    }
    tight ||= hangs(demand, kept);
  }
  return { tokens: kept, lower: Math.min(lower, kept.length), tight };
}

function demandOf(duels, least) {
  const T = duels[0].tokens;
  const opposed = duels.map((one) => one.against > 0);
  const share = Array.from({ length: T }, () => new Float64Array(duels.length));
  duels.forEach((one, r) => {
    one.order.forEach((t, i) => {
      share[t][r] = opposed[r] ? one.support[i] / one.against : 1;
    });
  });
  return {
    share,
    given: duels.map((one, r) => (opposed[r] ? one.given / one.against : Number(one.given > 0))),
    target: duels.map((one, r) => (opposed[r] || (one.strict && one.given === 0) ? 1 : 0)),
    strict: duels.map((one, r) => one.strict && opposed[r]),
    opposed,
    least,
  };
}

function heldBy(demand, tokens) {
  const held = new Float64Array(demand.given.length);
  for (const t of tokens) for (let r = 0; r < held.length; r++) held[r] += demand.share[t][r];
  return held.map((sum, r) => demand.given[r] + sum);
}

function meets(demand, held, r) {
  return beats(held[r], demand.target[r], demand.strict[r]);
}

function met(demand, tokens) {
  if (tokens.length < demand.least) return false;
  const held = heldBy(demand, tokens);
  return demand.target.every((_, r) => meets(demand, held, r));
}

/** What a token brings on its own, nothing counted twice. */
function decisive(demand) {
  return demand.share.map((row) => row.reduce((sum, x, r) => sum + Math.min(x, demand.target[r]), 0));
}

/** Add the token that brings most of what is still missing until every rival is beaten. */
function greedy(demand, start) {
  const kept = [...start];
  const taken = new Set(kept);
  while (!met(demand, kept) && taken.size < demand.share.length) {
    const held = heldBy(demand, kept);
    const open = demand.target.map((_, r) => !meets(demand, held, r));
    const missing = demand.target.map((goal, r) => (open[r] ? Math.max(goal - held[r], 0) + ROUNDING : 0));
    const gain = open.some(Boolean)
      ? demand.share.map((row) => row.reduce((sum, x, r) => sum + Math.min(x, missing[r]), 0))
      : decisive(demand);
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
function pruned(demand, tokens) {
  const worth = decisive(demand);
  let kept = [...tokens].sort((i, j) => worth[j] - worth[i] || i - j);
  for (const t of [...kept].reverse()) {
    const rest = kept.filter((one) => one !== t);
    if (met(demand, rest)) kept = rest;
  }
  return kept;
}

/** Some comparison around this set is a tie to rounding, or the set does not win. */
function hangs(demand, kept) {
  if (!met(demand, kept)) return true;
  const around = [kept, ...kept.map((t) => kept.filter((one) => one !== t))];
  return around.some((tokens) =>
    heldBy(demand, tokens).some((sum, r) => demand.opposed[r] && Math.abs(sum - demand.target[r]) <= ROUNDING),
  );
}

/** The most decisive token that beats every rival by itself, -1 if there is none; and whether that hangs on rounding. */
function byOne(demand) {
  const worth = decisive(demand);
  let token = -1;
  let tight = false;
  demand.share.forEach((_, t) => {
    const held = heldBy(demand, [t]);
    const enough = demand.target.map((_, r) => meets(demand, held, r));
    const tie = demand.target.map((goal, r) => demand.opposed[r] && Math.abs(held[r] - goal) <= ROUNDING);
    tight ||= tie.some(Boolean) && enough.every((is, r) => is || tie[r]);
    if (enough.every(Boolean) && (token < 0 || worth[t] > worth[token])) token = t;
  });
  return { token, tight };
}

/** An optimum of: least sum x with 0 <= x <= 1 and, for each rival, sum of x share >= what is missing. */
function relaxation(demand, kept) {
  const missing = demand.target.map((goal, r) => goal - demand.given[r]);
  const asked = missing.map((_, r) => r).filter((r) => missing[r] > LP_TOLERANCE);
  if (!asked.length) return { x: demand.share.map(() => 0), bound: 0 };
  const rows = asked.map((r) => demand.share.map((row) => Math.min(row[r], missing[r])));
  const bound = asked.map((r, i) => missing[r] - rows[i].reduce((sum, x) => sum + (x < 1e-9 ? x : 0), 0));
  const whole = rows.map((row) => row.map((x) => (x < 1e-9 ? 0 : x)));
  return leastCoverRelaxed(whole, bound, kept);
}
