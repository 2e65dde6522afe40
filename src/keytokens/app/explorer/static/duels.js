// The label against one rival (keytokens/proof/votes.py): two piles of positive numbers, and the two sorts that
// answer for two classes.

import { fsum } from "./numbers.js";
import { ROUNDING } from "./votes.js";

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

/** First m >= 1 for which the label loses without its m largest supporters: sums of what is left, nothing subtracted. */
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
