// Fewest tokens that fix the label, fewest whose deletion changes it: keytokens/proof/tokens.py and
// cover.py. Two classes and all flips are minima; a sufficient set against several rivals is subset-minimal, with a
// lower bound (the minimum is NP-hard from three classes on).

import { leastCover } from "./cover.js";
import { fewestDeleted, fewestKept } from "./duels.js";
import { duelsOf, labelOf, take } from "./votes.js";

export const NOTHING = { indices: [], size: 0, lower: 0, status: "none", tight: false, labelAfter: null };

export function sufficientTokens(ballot) {
  if (ballot.tokens === 0 && !ballot.hasSink) return NOTHING;
  const duels = duelsOf(ballot);
  if (duels.length > 1) {
    const found = leastCover(duels, ballot.hasSink ? 0 : 1);
    const size = found.tokens.length;
    const status = size === found.lower ? "minimum" : "subset-minimal";
    return { indices: found.tokens, size, lower: found.lower, status, tight: found.tight, labelAfter: null };
  }
  const one = duels[0];
  // the document itself wins with all its supporters; where rounding denies it, they are the answer to rounding
  let { size, tight } = fewestKept(one) || { size: one.order.length, tight: true };
  let indices = one.order.slice(0, size);
  if (size === 0 && !one.mayEmpty) {
    size = 1; // nobody opposes: any one token will do, the most decisive one is shown
    indices = one.order.length ? one.order.slice(0, 1) : [0];
  }
  return { indices, size, lower: size, status: "minimum", tight, labelAfter: null };
}

export function flipTokens(ballot) {
  const answers = [];
  for (const one of duelsOf(ballot)) {
    const found = fewestDeleted(one);
    if (found) answers.push({ ...found, order: one.order });
  }
  if (!answers.length) return NOTHING;
  const best = answers.reduce((least, one) => (one.size < least.size ? one : least));
  const m = best.size;
  const indices = best.order.slice(0, m);
  const tight = answers.some((one) => one.size <= m + 1 && one.tight);
  return { indices, size: m, lower: m, status: "minimum", tight, labelAfter: labelWithout(ballot, indices) };
}

/** Class of the rest, which the label is known to have lost: with one rival it is that rival. */
function labelWithout(ballot, deleted) {
  if (ballot.rivals.length === 1) return ballot.rivals[0];
  const gone = new Set(deleted);
  return labelOf(
    take(
      ballot,
      ballot.logWeight.map((_, t) => t).filter((t) => !gone.has(t)),
    ),
  );
}
