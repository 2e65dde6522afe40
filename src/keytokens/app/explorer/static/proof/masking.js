// Fewest words to mask so that the label loses, fewest to keep so that it cannot, for occurrences counted one by one
// (keytokens/proof/masking.py).
//
// Fewest words to keep: per number of kept words a front of vectors, the opponent's least sum for each run length;
// dominated ones are dropped, and so are those that lose to a fixed response. A word without supporting n-grams need not
// be kept.

import { leastOf, stayed } from "./program.js";

const CELLS = 4000000; // largest table of sums; beyond it prices give bounds
const STEPS = 4000000; // words read while a price is sought
const VECTORS = 40000; // work limit: vectors extended in one search
const DONE = -1; // the kept words spell something known by themselves, or need not

/** Fewest masked words, at most `limit`, that make the label lose: {words or null, lower, complete, tight}. */
export function fewestMasks(program, limit) {
  const least = Math.min(limit, program.length);
  if (program.slack > 0) return leavingSomething(program, least);
  // nobody opposes: the label loses a tie, where nothing of its own survives
  if (!program.strict) return { words: null, lower: least + 1, complete: true, tight: false };
  const signs = { vote: program.vote.map(Math.sign), constant: Math.sign(program.constant) };
  return leavingSomething(program.with(signs), least);
}

/** If the best mask leaves nothing although it must not, each n-gram that a losing rest can hold is spared in turn. */
function leavingSomething(program, limit) {
  const found = masksFrom(program, 1, limit, () => false);
  if (found.words === null || program.mayEmpty || program.survives(found.words)) return found;
  let most = limit;
  let words = null;
  const answers = [{ words, lower: most + 1, complete: true, tight: found.tight }];
  program.vote.forEach((vote, o) => {
    if (vote > Math.max(program.slack - program.constant, 0)) return;
    const isSpared = (i) => i >= program.first[o] && i < program.first[o] + program.size[o];
    const one = masksFrom(program, found.lower, most, isSpared);
    answers.push(one);
    if (one.words !== null) [words, most] = [one.words, one.lower - 1];
  });
  return {
    words,
    lower: Math.min(...answers.map((one) => one.lower)),
    complete: answers.every((one) => one.complete),
    tight: answers.some((one) => one.tight),
  };
}

/** Fewest masks, from `least` to `most`, that make the label lose, without masking the words that are spared. */
function masksFrom(program, least, most, isSpared) {
  const tables = [];
  let tight = false;
  for (const table of program.counted((i) => (isSpared(i) ? Infinity : 0), most)) {
    const m = tables.length;
    if (m * program.runs * (program.length + 1) > CELLS)
      return { words: null, lower: Math.max(m, 1), complete: false, tight };
    tables.push(table);
    if (m < least) continue;
    const best = leastOf(table[program.length]);
    tight ||= program.near(best);
    if (program.loses(best)) return { words: program.changed(tables), lower: m, complete: true, tight };
  }
  return { words: null, lower: most + 1, complete: true, tight };
}

/** Least sum over all masks that spare the words `kept` (flags by word). */
export function leastSum(program, kept) {
  return leastOf(program.walked((i) => (kept[i] ? Infinity : 0))[program.length]);
}

/** Bounds for texts too long for the table: a price per masked word instead of a count. */
export function pricedMasks(program) {
  let low = 1e-300,
    high = Math.max(1e-299, 2 * program.vote.reduce((sum, v) => sum + Math.abs(v), 0));
  let best = null,
    lower = 1;
  const turns = Math.max(4, Math.min(40, Math.floor(STEPS / Math.max(1, program.length))));
  for (let turn = 0; turn < turns; turn++) {
    const price = Math.sqrt(low) * Math.sqrt(high);
    const table = program.walked(() => price);
    const cost = leastOf(table[program.length]);
    const words = program.changed([table]);
    const needed = ((cost - program.slack) / price) * (1 - 1e-9) - 1e-6;
    lower = Math.max(lower, Math.ceil(Math.min(needed, program.length + 1)));
    if (program.loses(cost - price * words.length)) {
      low = price;
      if (words.length && (best === null || words.length < best.length)) best = words;
    } else high = price;
  }
  const complete = best === null ? lower > program.length : best.length === lower;
  return { words: best, lower, complete, tight: false };
}

/** {words or null, complete}: fewest words, at most `most`, that no masking of the others can overcome. */
export function fewestKeptWords(program, most) {
  const mustSpell = !(program.strict || program.mayEmpty);
  const tag = mustSpell ? 0 : DONE;
  const useful = new Uint8Array(program.length);
  program.first.forEach((start, o) => {
    if (mustSpell || program.vote[o] > 0) useful.fill(1, start, start + program.size[o]);
  });
  const { ahead, raised } = responseOf(program, program.changed([program.walked(() => 0)]), most);
  let fronts = new Map([[`0,${tag}`, { k: 0, tag, vectors: [{ sums: program.start, words: null }] }]]);
  let work = 0;
  for (let i = 0; i < program.length; i++) {
    for (const { vectors } of fronts.values()) work += vectors.length;
    if (work > VECTORS) return { words: null, complete: false };
    fronts = extended(fronts, program, i, useful[i] ? most : 0);
    keepHopeful(fronts, program, ahead[i + 1], raised[i + 1], most);
    for (const front of fronts.values()) front.vectors = undominated(front.vectors);
  }
  return { words: smallest(fronts, program), complete: true };
}

/** The fronts one word further: word i is kept, up to `limit` kept words, or free for the opponent to mask. */
function extended(fronts, program, i, limit) {
  const fresh = new Map();
  const frontAt = (k, tag) => {
    const key = `${k},${tag}`;
    if (!fresh.has(key)) fresh.set(key, { k, tag, vectors: [] });
    return fresh.get(key).vectors;
  };
  for (const { k, tag, vectors } of fronts.values()) {
    const free = frontAt(k, tag === DONE ? DONE : 0);
    const spells = tag === DONE || program.known[i][tag];
    const kept = k < limit ? frontAt(k + 1, spells ? DONE : Math.min(tag + 1, program.runs - 1)) : null;
    for (const { sums, words } of vectors) {
      const after = stayed(sums, program.gain[i]);
      if (kept) kept.push({ sums: [Infinity, ...after], words: { before: words, word: i } });
      free.push({ sums: [leastOf(sums), ...after], words });
    }
  }
  return fresh;
}

/** Drops the vectors that lose to the response. */
function keepHopeful(fronts, program, ahead, raised, most) {
  for (const [key, front] of fronts) {
    const rest = raised[most - front.k];
    front.vectors = front.vectors.filter(
      ({ sums }) => !program.loses(Math.min(...sums.map((sum, r) => sum + ahead[r])) + rest),
    );
    if (!front.vectors.length) fronts.delete(key);
  }
}

function undominated(vectors) {
  if (vectors.length === 1) return vectors;
  const descending = [...vectors].sort(({ sums: a }, { sums: b }) => {
    for (let r = 0; r < a.length; r++) if (a[r] !== b[r]) return a[r] < b[r] ? 1 : -1;
    return 0;
  });
  const front = [];
  for (const one of descending) {
    if (!front.some((other) => other.sums.every((sum, r) => sum >= one.sums[r]))) front.push(one);
  }
  return front;
}

/** What the opponent gets by masking a fixed set of words from word i on, and the most that kept words add to it. */
function responseOf(program, mask, most) {
  const masked = new Uint8Array(program.length);
  for (const word of mask) masked[word] = 1;
  const n = program.runs;
  const ahead = [new Array(n).fill(0)];
  for (let i = program.length - 1; i >= 0; i--) {
    const later = ahead[ahead.length - 1];
    ahead.push(
      masked[i]
        ? new Array(n).fill(later[0])
        : Array.from({ length: n }, (_, r) => program.gain[i][r] + later[Math.min(r + 1, n - 1)]),
    );
  }
  return { ahead: ahead.reverse(), raised: raisedBy(revived(program, masked), most) };
}

/** Per word j the votes of the supporting n-grams whose last masked word is j. */
function revived({ length, first, size, vote }, masked) {
  const gains = new Float64Array(length);
  first.forEach((start, o) => {
    let last = -1;
    for (let i = start; i < start + size[o]; i++) if (masked[i]) last = i;
    if (last >= 0 && vote[o] > 0) gains[last] += vote[o];
  });
  return gains;
}

/** [i][q]: sum of the q largest entries from i on. */
function raisedBy(gains, most) {
  let top = [];
  const out = [new Array(most + 1).fill(0)];
  for (let i = gains.length - 1; i >= 0; i--) {
    const gain = gains[i];
    if (most && gain > 0 && (top.length < most || gain > top[top.length - 1])) {
      top = [...top, gain].sort((a, b) => b - a).slice(0, most);
      const sums = [0];
      for (const one of top) sums.push(sums[sums.length - 1] + one);
      while (sums.length < most + 1) sums.push(sums[sums.length - 1]);
      out.push(sums);
    } else out.push(out[out.length - 1]);
  }
  return out.reverse();
}

/** Fewest words; among them those that leave the opponent least. */
function smallest(fronts, program) {
  let best = null;
  for (const { k, tag, vectors } of fronts.values()) {
    if (tag !== DONE) continue;
    for (const { sums, words } of vectors) {
      const least = Math.min(...sums);
      if (!program.loses(least) && (!best || k < best.k || (k === best.k && least > best.least)))
        best = { k, least, words };
    }
  }
  if (!best) return null;
  const found = [];
  for (let link = best.words; link !== null; link = link.before) found.push(link.word);
  return found.reverse();
}
