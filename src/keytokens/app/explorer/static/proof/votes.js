// One document as votes (keytokens/proof/votes.py): the margin of the label over a rival is a weighted mean, its sign
// the sign of the sum of h = W m, so every token votes and the decision is linear. The label against one rival is a
// pair: two piles of positive numbers, and the two sorts that answer for two classes.

import { byDecreasing, clip, fsum } from "../numbers.js";

export const ROUNDING = 1e-12; // sums closer than this, relative to the opposition, tie; what hangs on it is `tight`

const logAbs = (x) => Math.log(Math.abs(x));

/** What each token weighs and how it votes for the label against each rival. values: K arrays over the tokens. */
export function votesOf(logWeight, values, label, sinkLogWeight, sinkValues) {
  const rivals = values.map((_, k) => k).filter((k) => k !== label);
  return completed({
    logWeight,
    margin: rivals.map((k) => values[label].map((v, t) => v - values[k][t])),
    strict: rivals.map((k) => k < label), // the rival wins ties
    rivals,
    label,
    sinkLogWeight,
    sinkMargin: rivals.map((k) => sinkValues[label] - sinkValues[k]),
  });
}

function completed(fields) {
  const tokens = fields.logWeight.length;
  const hasSink = fields.sinkLogWeight > -Infinity;
  return { ...fields, tokens, hasSink };
}

/** Other tokens before the same question: same label, rivals and sink. */
export function reweighted(one, logWeight, margin) {
  return completed({ ...one, logWeight, margin, pairs: undefined, items: undefined });
}

export function take(one, tokens) {
  return reweighted(
    one,
    tokens.map((t) => one.logWeight[t]),
    one.margin.map((m) => tokens.map((t) => m[t])),
  );
}

/** The label against each rival, made once. */
export function pairsOf(one) {
  if (!one.pairs) one.pairs = one.rivals.map((_, r) => pair(one, r));
  return one.pairs;
}

function pair(one, r) {
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

/** Does this much support win? Sums within ROUNDING of each other tie, and a tie goes to a strict rival. */
export function beats(support, against, strict) {
  const slack = ROUNDING * against;
  return strict ? support - against > slack : support - against >= -slack;
}

export function near(support, against) {
  return against > 0 && Math.abs(support - against) <= ROUNDING * against;
}

/** First k for which the k largest supporters beat all opposition: {size, tight} or null. */
export function fewestKept(one) {
  const total = (k) => fsum([one.given, ...one.support.slice(0, k)]);
  const enough = (k) => beats(total(k), one.against, one.strict);
  const k = firstWhere(enough, reached(one.support, one.against - one.given), 0, one.support.length);
  if (!enough(k)) return null;
  return { size: k, tight: near(total(k), one.against) || (k > 0 && near(total(k - 1), one.against)) };
}

// The votes that remain are summed: a difference would lose digits.
/** First m >= 1 for which the label loses without its m largest supporters. */
export function fewestDeleted(one) {
  const total = (m) => fsum([one.given, ...one.support.slice(m)]);
  const loses = (m) => !beats(total(m), one.against, one.strict);
  const n = one.support.length;
  const left = reached([...one.support].reverse(), one.against - one.given);
  const m = firstWhere(loses, n - left, 1, n);
  if (m > n || !loses(m) || (m === one.tokens && !one.mayEmpty)) return null;
  return { size: m, tight: near(total(m), one.against) || near(total(m - 1), one.against) };
}

/** How many of these numbers add up to a sum: a first guess. */
function reached(numbers, sum) {
  let total = 0;
  let k = 0;
  while (k < numbers.length && total < sum) total += numbers[k++];
  return k;
}

/** First n in low..high where a monotone condition holds (`high` if it never does), by steps from a good guess. */
function firstWhere(holds, guess, low, high) {
  let n = Math.max(low, Math.min(guess, high));
  while (n > low && holds(n - 1)) n--;
  while (n < high && !holds(n)) n++;
  return n;
}
