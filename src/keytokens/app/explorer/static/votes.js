// One document as votes (keytokens/proof/votes.py): the margin of the label over a rival is a weighted mean,
// its sign the sign of the sum of h = W m, so every token votes and the decision is linear.

import { byDecreasing, clip, fsum } from "./numbers.js";

export const ROUNDING = 1e-12; // sums closer than this, relative to the opposition, tie; what hangs on it is `tight`

const logAbs = (x) => Math.log(Math.abs(x));

/** What each token weighs and how it votes for the label against each rival. values: K arrays over the tokens. */
export function ballotOf(logWeight, values, label, sinkLogWeight, sinkValues) {
  const rivals = values.map((_, k) => k).filter((k) => k !== label);
  return ballot({
    logWeight,
    margin: rivals.map((k) => values[label].map((v, t) => v - values[k][t])),
    strict: rivals.map((k) => k < label), // the rival wins ties
    rivals,
    label,
    sinkLogWeight,
    sinkMargin: rivals.map((k) => sinkValues[label] - sinkValues[k]),
  });
}

function ballot(fields) {
  const tokens = fields.logWeight.length;
  const hasSink = fields.sinkLogWeight > -Infinity;
  return { ...fields, tokens, hasSink };
}

/** Other tokens before the same question: same label, rivals and sink. */
export function reweighted(one, logWeight, margin) {
  return ballot({ ...one, logWeight, margin, duels: undefined, items: undefined });
}

export function take(one, tokens) {
  return reweighted(
    one,
    tokens.map((t) => one.logWeight[t]),
    one.margin.map((m) => tokens.map((t) => m[t])),
  );
}

/** The label against each rival, made once. */
export function duelsOf(one) {
  if (!one.duels) one.duels = one.rivals.map((_, r) => duel(one, r));
  return one.duels;
}

function duel(one, r) {
  const votes = votesAgainst(one, r);
  const sinkVote = votes.pop();
  const logSize = one.margin[r].map((m, t) => one.logWeight[t] + logAbs(m));
  const supporters = [];
  const opposed = [Math.min(sinkVote, 0)];
  votes.forEach((h, t) => {
    if (h > 0) supporters.push(t);
    if (h < 0) opposed.push(h);
  });
  const order = byDecreasing(supporters, logSize);
  return {
    order, // the supporters, largest vote first, equal ones in document order
    support: order.map((t) => votes[t]),
    given: Math.max(sinkVote, 0), // support that nobody can delete
    against: -fsum(opposed) + 0, // N, all opposition
    strict: one.strict[r],
    mayEmpty: one.hasSink,
    tokens: one.tokens,
  };
}

/** Votes of the tokens and, last, of the sink against rival r. */
export function votesAgainst(one, r) {
  return relativeVotes([...one.logWeight, one.sinkLogWeight], [...one.margin[r], one.sinkMargin[r]]);
}

/** h = W m up to one positive factor, every sign kept: relative to the largest opponent, in the log domain far off. */
function relativeVotes(logWeight, margin) {
  const size = margin.map((m, t) => logWeight[t] + logAbs(m));
  let anchor = -1;
  for (const wanted of [(m) => m < 0, () => true]) {
    margin.forEach((m, t) => {
      if (wanted(m) && size[t] > (anchor < 0 ? -Infinity : size[anchor])) anchor = t;
    });
    if (anchor >= 0) break;
  }
  if (anchor < 0) return margin.map(() => 0);
  return margin.map((m, t) => {
    const shift = logWeight[t] - logWeight[anchor];
    if (Math.abs(shift) <= 300) return m * Math.exp(shift);
    if (size[t] === -Infinity || Number.isNaN(size[t])) return 0;
    const apart = Math.exp(clip(size[t] - size[anchor], -690, 600)) * Math.abs(margin[anchor]);
    return Math.sign(m) * Math.max(apart, 1e-305);
  });
}

/** The class of a document: the largest score, the lowest index among equals; no vote underflows. */
export function labelOf(one) {
  let best = one.label;
  let top = { sign: 0, log: -Infinity };
  one.rivals.forEach((rival, r) => {
    const lead = leadOf(one, r);
    if (exceeds(lead, top) || (rival < best && !exceeds(top, lead))) {
      best = rival;
      top = lead;
    }
  });
  return best;
}

/** Sign and log size of f_k - f_y, up to the common denominator. */
function leadOf(one, r) {
  const margin = [...one.margin[r], one.sinkMargin[r]];
  const logWeight = [...one.logWeight, one.sinkLogWeight];
  const size = margin.map((m, t) => (m === 0 ? -Infinity : logWeight[t] + logAbs(m)));
  const top = size.reduce((a, b) => Math.max(a, b), -Infinity);
  if (top === -Infinity) return { sign: 0, log: -Infinity };
  const votes = margin.map((m, t) => Math.sign(m) * Math.exp(size[t] - top));
  const total = -fsum(votes);
  const all = votes.reduce((sum, v) => sum + Math.abs(v), 0);
  if (Math.abs(total) <= ROUNDING * all) return { sign: 0, log: -Infinity };
  return { sign: total > 0 ? 1 : -1, log: top + logAbs(total) };
}

function exceeds(one, other) {
  if (one.sign !== other.sign) return one.sign > other.sign;
  return one.sign !== 0 && one.sign * (one.log - other.log) > ROUNDING;
}
