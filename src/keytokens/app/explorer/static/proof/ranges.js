// How far the margin, and so the probability, can move under deletions (keytokens/proof/ranges.py). A margin is
// a weighted mean of values, the sink among them; adding an item raises a mean iff its value exceeds the mean.

import { argmax, byDecreasing, logSumExp } from "../numbers.js";

const LEVEL = 20; // log weights closer together than this: plain means keep the digits that comparisons need
const NARROW = 600; // closer than this: weights can be exponentiated once, whatever is deleted

/** A mean as the value of its heaviest item plus an offset, which may be far below the last digit of the value. */
function meanOf(centre, offset) {
  return { centre, sign: Math.sign(offset), logOffset: Math.log(Math.abs(offset)) };
}

const offsetOf = (mean) => (mean.sign === 0 ? 0 : mean.sign * Math.exp(mean.logOffset));
const valueOf = (mean) => mean.centre + offsetOf(mean);

/** Is sign * this mean larger? */
function isBeyond(one, other, sign) {
  if (one.centre !== other.centre) return sign * valueOf(one) > sign * valueOf(other);
  if (one.sign !== other.sign) return sign * one.sign > sign * other.sign;
  return one.sign !== 0 && sign * one.sign * one.logOffset > sign * one.sign * other.logOffset;
}

/** The tokens and, last, the sink where there is one, with their values for one rival. */
class Items {
  constructor(votes, r) {
    this.sink = votes.hasSink;
    this.logWeight = this.sink ? [...votes.logWeight, votes.sinkLogWeight] : votes.logWeight;
    this.value = this.sink ? [...votes.margin[r], votes.sinkMargin[r]] : votes.margin[r];
    this.free = this.value.length - Number(this.sink);
    this.top = this.logWeight.reduce((a, b) => Math.max(a, b), -Infinity);
    const spread = this.top - this.logWeight.reduce((a, b) => Math.min(a, b), Infinity);
    this.level = spread < LEVEL;
    this.narrow = spread < NARROW;
    this.weight = this.logWeight.map((a) => Math.exp(a - this.top));
  }

  held(kept) {
    const held = new Uint8Array(this.value.length);
    for (const t of kept) held[t] = 1;
    if (this.sink) held[this.free] = 1;
    return held;
  }

  without(gone) {
    const keep = new Uint8Array(this.value.length).fill(1);
    for (const t of gone) keep[t] = 0;
    return this.mean(keep);
  }

  mean(keep) {
    const here = this.value.map((_, t) => t).filter((t) => keep[t]);
    const top = here.reduce((best, t) => (this.logWeight[t] > this.logWeight[best] ? t : best), here[0]);
    const centre = this.value[top];
    if (this.narrow) {
      let total = 0;
      let sum = 0;
      for (const t of here) {
        total += this.weight[t];
        sum += this.weight[t] * (this.value[t] - centre);
      }
      return meanOf(centre, sum / total);
    }
    // the offset itself in the log domain: scaled by its own largest term, it cannot underflow
    const size = here.map((t) => this.logWeight[t] + Math.log(Math.abs(this.value[t] - centre)));
    const largest = size[argmax(size)];
    if (largest === -Infinity) return meanOf(centre, 0);
    const offset = here.reduce((sum, t, i) => sum + Math.sign(this.value[t] - centre) * Math.exp(size[i] - largest), 0);
    const part = meanOf(centre, offset);
    return { ...part, logOffset: part.logOffset + largest - logSumExp(here.map((t) => this.logWeight[t])) };
  }

  /** Numbers with the signs and the order of W (mean - m); in a wide document sign times shifted log size. */
  harm(mean) {
    const gap = this.value.map((v) => mean.centre - v + offsetOf(mean));
    if (this.narrow) return gap.map((g, t) => this.weight[t] * g);
    const central = this.value.map((v) => v === mean.centre);
    const size = gap.map((g, t) => this.logWeight[t] + (central[t] ? mean.logOffset : Math.log(Math.abs(g))));
    const least = size.reduce((a, b) => (b > -Infinity ? Math.min(a, b) : a), Infinity);
    return size.map((x, t) => (x > -Infinity ? x - least + 1 : 0) * (central[t] ? mean.sign : Math.sign(gap[t])));
  }
}

function itemsOf(votes, r) {
  votes.items ??= [];
  votes.items[r] ??= new Items(votes, r);
  return votes.items[r];
}

/** Per rival the least margin over all sub-documents that contain the tokens `kept`; with sign 1 the greatest. */
export function extremesKeeping(votes, kept, sign) {
  return votes.rivals.map((_, r) => {
    const items = itemsOf(votes, r);
    return sign * highest(items, items.held(kept), sign);
  });
}

/** Greatest mean of sign * value over the held items and others: those of largest value, while they help. */
function highest(items, held, sign) {
  const mean = sign * valueOf(items.mean(held));
  const signed = items.value.map((v) => sign * v);
  const entering = signed.map((_, t) => t).filter((t) => !held[t] && signed[t] > mean);
  const order = byDecreasing(entering, signed);
  const inside = Array.from(held.keys()).filter((t) => held[t]);
  return items.narrow
    ? highestNarrow(items, inside, order, signed, mean)
    : highestWide(items, inside, order, signed, mean);
}

function highestNarrow({ weight }, inside, order, signed, mean) {
  let total = inside.reduce((sum, t) => sum + weight[t], 0);
  const base = total * mean;
  let added = 0;
  let best = mean;
  for (const t of order) {
    added += weight[t] * signed[t];
    total += weight[t];
    best = Math.max(best, (base + added) / total); // the means rise, then fall
  }
  return best;
}

function highestWide({ logWeight }, inside, order, signed, start) {
  let mean = start;
  let total = logSumExp(inside.map((t) => logWeight[t]));
  for (const t of order) {
    if (signed[t] <= mean) break;
    total = logSumExp([total, logWeight[t]]);
    mean += Math.exp(logWeight[t] - total) * (signed[t] - mean);
  }
  return mean;
}

/** For each size m, per rival [least, greatest] margin when at most m tokens are deleted; sizes must not decrease. */
export function rangesDeleting(votes, sizes) {
  const most = votes.hasSink ? votes.tokens : votes.tokens - 1;
  const ends = sizes.map(() => votes.rivals.map(() => [0, 0]));
  votes.rivals.forEach((_, r) => {
    const items = itemsOf(votes, r);
    for (const [end, sign] of [
      [0, -1],
      [1, 1],
    ]) {
      let mean = items.without([]);
      sizes.forEach((m, i) => {
        mean = climb(items, Math.min(m, most), sign, mean);
        ends[i][r][end] = valueOf(mean);
      });
    }
  });
  return ends;
}

/** Dinkelbach: delete the at most m tokens that pull most against the guess; the rest's mean is the next guess. */
function climb(items, m, sign, start) {
  let mean = start;
  for (;;) {
    const harm = items
      .harm(mean)
      .slice(0, items.free)
      .map((x) => sign * x);
    const harmful = harm.map((_, t) => t).filter((t) => harm[t] > 0);
    const following = items.without(byDecreasing(harmful, harm).slice(0, m));
    if (!grows(items, following, mean, sign)) return mean;
    mean = following;
  }
}

function grows(items, one, other, sign) {
  return items.level ? sign * (valueOf(one) - valueOf(other)) > 0 : isBeyond(one, other, sign);
}

/** The probability of the label from its margins over all rivals. */
export function probabilityOf(margins) {
  if (margins.length === 1) {
    const odds = Math.exp(-Math.abs(margins[0]));
    return margins[0] >= 0 ? 1 / (1 + odds) : odds / (1 + odds);
  }
  return Math.exp(-logSumExp([...margins.map((m) => -m), 0]));
}

/** The probability of the label once some tokens are deleted. */
export function probabilityWithout(votes, gone) {
  return probabilityOf(votes.rivals.map((_, r) => valueOf(itemsOf(votes, r).without(gone))));
}
