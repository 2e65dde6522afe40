// Counting occurrences instead of tokens (keytokens/proof/occurrences.py): occurrence j of a token adds the step
// phi(j) - phi(j - 1). Keeping takes the largest steps first; deleting is a sort with an additive phi, else a knapsack.

import { tally } from "../numbers.js";
import { NOTHING, flipTokens, sufficientTokens } from "./tokens.js";
import { beats, labelOf, near, pairsOf, reweighted } from "./votes.js";

/** One item per occurrence that adds weight, and the token of each item. */
function itemised(votes, occurrences, phi) {
  const token = [],
    logWeight = [];
  occurrences.forEach((c, s) => {
    const unit = votes.logWeight[s] - Math.log(phi.of(c));
    for (let j = 1; j <= c; j++) {
      const step = phi.of(j) - phi.of(j - 1);
      if (step <= 0) continue;
      token.push(s);
      logWeight.push(unit + Math.log(step));
    }
  });
  return {
    items: reweighted(
      votes,
      logWeight,
      votes.margin.map((m) => token.map((s) => m[s])),
    ),
    token,
  };
}

/** Fewest occurrences that fix the label; `indices` names the token of each. */
export function sufficientOccurrences(votes, occurrences, phi) {
  const { items, token } = itemised(votes, occurrences, phi);
  const found = sufficientTokens(items);
  return { ...found, indices: found.indices.map((i) => token[i]) };
}

/** Fewest occurrences whose deletion changes the label; `indices` names the token of each. */
export function flipOccurrences(votes, occurrences, phi) {
  if (phi.additive) {
    const { items, token } = itemised(votes, occurrences, phi);
    const found = flipTokens(items);
    return { ...found, indices: found.indices.map((i) => token[i]) };
  }
  let best = NOTHING;
  for (const one of pairsOf(votes)) {
    const found = fewestRemoved(one, occurrences, phi);
    if (found && (best.status === "none" || found.size < best.size)) best = found;
  }
  if (best.status === "none") return NOTHING;
  const gone = tally(best.indices, votes.tokens);
  const left = occurrences.map((c, s) => c - gone[s]);
  return { ...best, labelAfter: labelOf(recounted(votes, occurrences, left, phi)) };
}

/** The document in which `left` of the occurrences of each token are left. */
export function recounted(votes, occurrences, left, phi) {
  const stays = Array.from(left, (_, s) => s).filter((s) => left[s] > 0);
  const shift = (s) => Math.log(phi.of(left[s])) - Math.log(phi.of(occurrences[s]));
  return reweighted(
    votes,
    stays.map((s) => votes.logWeight[s] + shift(s)),
    votes.margin.map((m) => stays.map((s) => m[s])),
  );
}

/** Knapsack: left[m] = least support that m deletions can leave, over the supporters one by one. */
function fewestRemoved(one, occurrences, phi) {
  if (one.order.length === one.tokens && !one.mayEmpty) return null;
  const limit = one.order.reduce((sum, s) => sum + occurrences[s], 0);
  let left = new Float64Array(limit + 1).fill(Infinity);
  left[0] = one.given;
  const choices = one.order.map((s, i) => {
    const options = Array.from(
      { length: occurrences[s] + 1 },
      (_, d) => (one.support[i] * phi.of(occurrences[s] - d)) / phi.of(occurrences[s]),
    );
    const next = new Float64Array(limit + 1).fill(Infinity);
    const choice = new Int32Array(limit + 1);
    for (let m = 0; m <= limit; m++) {
      for (let d = 0; d < options.length && d <= m; d++) {
        const sum = left[m - d] + options[d];
        if (sum < next[m]) {
          next[m] = sum;
          choice[m] = d;
        }
      }
    }
    left = next;
    return choice;
  });
  let m = 1;
  while (m <= limit && beats(left[m], one.against, one.strict)) m++;
  if (m > limit) return null;
  const tight = near(left[m], one.against) || near(left[m - 1], one.against);
  const indices = [];
  for (let i = choices.length - 1, rest = m; i >= 0; i--) {
    const d = choices[i][rest];
    for (let j = 0; j < d; j++) indices.push(one.order[i]);
    rest -= d;
  }
  return { indices: indices.reverse(), size: m, lower: m, status: "minimum", tight, labelAfter: null };
}
