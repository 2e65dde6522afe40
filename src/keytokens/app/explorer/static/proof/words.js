// Fewest words to mask so that the label changes, fewest to keep so that it cannot (keytokens/proof/words.py).
// Raw counts: exact for two classes. Log and binary counts with n >= 2: a lower bound and a verified set, "minimum"
// where they meet. Where no set is found in a short text, all masks are tried.

import { fewestKeptWords, fewestMasks, leastSum, pricedMasks } from "./masking.js";
import { flipOccurrences, sufficientOccurrences } from "./occurrences.js";

const TRIMMING = 1000000; // words read while a set is trimmed; beyond it a longer set is reported
const WIDEST = 1000000; // words times kept words: above it a search for the fewest kept words is not begun
const ROUNDS = 10; // how often shares are moved to raise the lower bound
const SHORT = 10; // words of a text all of whose masks can be tried

export const NO_WORDS = { positions: [], size: 0, lower: 0, status: "none", tight: false, labelAfter: null };

export function flipWords(phrase) {
  if (phrase.order === 1)
    return fromOccurrences(phrase, flipOccurrences(phrase.votes, phrase.occurrences, phrase.phi));
  const answers = [];
  let most = phrase.length;
  for (const r of phrase.rivals) {
    const answer = againstOne(phrase, r, most);
    if (answer.words !== null) most = Math.min(most, answer.words.length - 1);
    answers.push(answer);
  }
  return smallestFlip(phrase, answers);
}

function smallestFlip(phrase, answers) {
  const tight = answers.some((one) => one.tight);
  const found = answers.map((one) => one.words).filter((words) => words !== null);
  const open = answers.filter((one) => one.words !== null || !one.complete).map((one) => one.lower);
  if (!found.length) {
    return open.length ? { ...NO_WORDS, lower: Math.min(...open), status: "bounds", tight } : NO_WORDS;
  }
  const words = found.reduce((least, one) => (one.length < least.length ? one : least));
  const lower = Math.min(...open, words.length);
  const status = lower === words.length ? "minimum" : "bounds";
  return { positions: words, size: words.length, lower, status, tight, labelAfter: phrase.labelAfter(words) };
}

/** Fewest masks, at most `most`, that let this rival win; every mask that is returned has been evaluated. */
function againstOne(phrase, r, most) {
  if (!phrase.isLocal(r)) return between(phrase, r, most);
  const found = searched(phrase.pessimistic(r, phrase.equalShares()), most);
  if (found.words === null || phrase.changes(found.words)) return found;
  // rounding, or a price that emptied the text
  return { words: null, lower: found.lower, complete: false, tight: true };
}

function searched(program, most) {
  const found = fewestMasks(program, most);
  if (found.words !== null || found.complete) return found;
  const priced = pricedMasks(program);
  return {
    words: priced.words,
    lower: Math.max(found.lower, priced.lower),
    complete: priced.complete,
    tight: found.tight,
  };
}

/** Bounds: no mask below what the pessimistic program needs; the masks it finds are tried with the true counts. */
function between(phrase, r, most) {
  let best = trimmed(phrase, fewestMasks(phrase.fullVotes(r), most).words);
  let shares = phrase.equalShares(),
    lower = 1,
    tight = false;
  for (let turn = 0; turn <= ROUNDS; turn++) {
    const found = searched(phrase.pessimistic(r, shares), most);
    lower = Math.max(lower, found.lower);
    tight ||= found.tight;
    if (found.words === null) return { words: best, lower, complete: found.complete && best === null, tight };
    best = shorter(best, trimmed(phrase, found.words));
    if (best !== null && lower >= best.length) break;
    shares = phrase.movedShares(shares, found.words, 1 / (turn + 2));
  }
  if (best === null && phrase.length <= SHORT) {
    best = firstOfAll(phrase, most);
    return { words: best, lower: best === null ? lower : best.length, complete: best === null, tight };
  }
  return { words: best, lower, complete: false, tight };
}

/** The fewest words, at most `most`, whose masking changes the label to any other, by trying all masks. */
function firstOfAll(phrase, most) {
  let best = null;
  for (let code = 1; code < 1 << phrase.length; code++) {
    const words = Array.from({ length: phrase.length }, (_, i) => i).filter((i) => code & (1 << i));
    if (words.length <= (best === null ? most : best.length - 1) && phrase.changes(words)) best = words;
  }
  return best;
}

/** The mask, if it truly changes the label, without the words that it does not need. */
function trimmed(phrase, words) {
  if (words === null || !phrase.changes(words)) return null;
  let mask = words;
  for (const word of words) {
    const rest = mask.filter((one) => one !== word);
    if (rest.length && phrase.changes(rest)) mask = rest;
  }
  return mask;
}

function shorter(one, other) {
  if (one === null || other === null) return one ?? other;
  return other.length < one.length ? other : one;
}

export function sufficientWords(phrase) {
  if (!phrase.first.length && !phrase.votes.hasSink) return NO_WORDS;
  if (phrase.order === 1)
    return fromOccurrences(phrase, sufficientOccurrences(phrase.votes, phrase.occurrences, phrase.phi));
  const check = new Check(phrase);
  const spelled = check.trimmed(spelledWords(phrase));
  let kept = spelled.words;
  let lower = phrase.votes.hasSink ? 0 : 1;
  for (const r of phrase.rivals) {
    const { bound, words } = fewestAgainst(phrase.optimistic(r), kept.length);
    lower = Math.max(lower, bound);
    if (words !== null && words.length < kept.length && check.proves(words)) kept = words;
  }
  lower = Math.min(lower, kept.length);
  const status = lower === kept.length ? "minimum" : check.exact && spelled.complete ? "subset-minimal" : "bounds";
  return { positions: kept, size: kept.length, lower, status, tight: check.hangs(kept), labelAfter: null };
}

/** Lower bound for one rival, and the set behind it if the search found one smaller than `size`. */
function fewestAgainst(program, size) {
  for (const most of new Set([size - 1, Math.floor(size / 4), 2])) {
    if ((most + 1) * program.length > WIDEST) continue;
    const found = size ? fewestKeptWords(program, Math.min(most, size - 1)) : { words: null, complete: true };
    if (found.words !== null) return { bound: found.words.length, words: found.words };
    if (found.complete) return { bound: Math.min(most + 1, size), words: null };
  }
  return { bound: 0, words: null };
}

/** Words that spell the occurrences of a sufficient set. */
function spelledWords(phrase) {
  const { indices } = sufficientOccurrences(phrase.votes, phrase.occurrences, phrase.phi);
  const words = new Set();
  for (const o of phrase.occurrencesOf(indices)) {
    for (let i = phrase.first[o]; i < phrase.first[o] + phrase.size[o]; i++) words.add(i);
  }
  return [...words].sort((a, b) => a - b);
}

/** Proves that kept words fix the label: exact where occurrences count for themselves, sound everywhere. */
class Check {
  constructor(phrase) {
    this.phrase = phrase;
    const shares = phrase.equalShares();
    this.programs = phrase.rivals.map((r) => phrase.pessimistic(r, shares));
    this.local = phrase.rivals.map((r) => phrase.isLocal(r));
    this.exact = this.local.every(Boolean);
  }

  /** Per rival, a sum that no masking of the other words undercuts. */
  least(words) {
    const flags = this.phrase.flags(words);
    return this.programs.map((one, r) => leastSum(this.local[r] ? one : this.phrase.guarded(r, one, flags), flags));
  }

  proves(words) {
    const { phrase } = this;
    if (!phrase.votes.hasSink && !phrase.inside(phrase.flags(words)).some(Boolean)) return false;
    const least = this.least(words);
    return !this.programs.some((one, r) => one.loses(least[r]));
  }

  /** A sum around this set is a tie to rounding. */
  hangs(words) {
    const short = words.length * this.phrase.length <= TRIMMING / 10;
    const around = [words, ...(short ? words.map((gone) => words.filter((w) => w !== gone)) : [])];
    return around.some((set) => {
      const least = this.least(set);
      return this.programs.some((one, r) => one.near(least[r]));
    });
  }

  /** Without the words it does not need, those that carry least tried first; and whether all were tried. */
  trimmed(words) {
    const carried = new Float64Array(this.phrase.length);
    for (const { vote, first, size } of this.programs) {
      vote.forEach((v, o) => {
        for (let i = first[o]; i < first[o] + size[o]; i++) carried[i] += Math.max(v, 0);
      });
    }
    const most = Math.max(1, Math.floor(TRIMMING / Math.max(1, this.phrase.length)));
    const tried = [...words].sort((a, b) => carried[a] - carried[b] || a - b).slice(0, most);
    let kept = words;
    for (const word of tried) {
      const rest = kept.filter((one) => one !== word);
      if (this.proves(rest)) kept = rest;
    }
    return { words: kept, complete: tried.length === words.length };
  }
}

/** Single words: an occurrence is a word. */
function fromOccurrences(phrase, found) {
  const positions = phrase
    .occurrencesOf(found.indices)
    .map((o) => phrase.first[o])
    .sort((a, b) => a - b);
  return { ...found, positions };
}
