// Fewest words to keep so that no masking of the others makes the label lose (keytokens/proof/masking.py): per
// number of kept words a front of vectors, the opponent's least sum for each run length; dominated ones are dropped,
// and so are those that lose to one of two fixed responses.

import { advanced, cheapestMask } from "./programme.js";

const VECTORS = 40000; // work limit: vectors extended in one search
const DONE = -1; // the kept words spell something known by themselves, or need not

/** {words or null, complete}: fewest words, at most `most`, that no masking of the others can overcome. */
export function fewestKeptWords(programme, most) {
  const needed = !programme.strict && !programme.mayEmpty;
  const responses = [cheapestMask(programme), []].map((mask) => responseOf(programme, mask, most));
  const start = [programme.constant, ...Array(programme.order - 1).fill(Infinity)];
  let fronts = new Map([
    [`0,${needed ? 0 : DONE}`, { k: 0, tag: needed ? 0 : DONE, vectors: [{ sums: start, words: null }] }],
  ]);
  let work = 0;
  for (let i = 0; i < programme.length; i++) {
    for (const { vectors } of fronts.values()) work += vectors.length;
    if (work > VECTORS) return { words: null, complete: false };
    fronts = extended(fronts, programme, i, most);
    for (const { ahead, raised } of responses) keepHopeful(fronts, programme, ahead[i + 1], raised[i + 1], most);
    for (const front of fronts.values()) front.vectors = undominated(front.vectors);
  }
  return { words: smallest(fronts, programme), complete: true };
}

function extended(fronts, programme, i, most) {
  const fresh = new Map();
  const frontAt = (k, tag) => {
    const key = `${k},${tag}`;
    if (!fresh.has(key)) fresh.set(key, { k, tag, vectors: [] });
    return fresh.get(key).vectors;
  };
  for (const { k, tag, vectors } of fronts.values()) {
    const free = frontAt(k, tag === DONE ? DONE : 0);
    const spells = tag === DONE || programme.known[i][tag];
    const kept = k < most ? frontAt(k + 1, spells ? DONE : Math.min(tag + 1, programme.order - 1)) : null;
    for (const { sums, words } of vectors) {
      const stay = advanced(sums, programme.gain[i]);
      if (kept) kept.push({ sums: stay, words: { before: words, word: i } });
      free.push({ sums: [Math.min(...sums, stay[0]), ...stay.slice(1)], words });
    }
  }
  return fresh;
}

/** Drops the vectors that lose to this response. */
function keepHopeful(fronts, programme, ahead, raised, most) {
  for (const [key, front] of fronts) {
    const rest = raised[most - front.k];
    front.vectors = front.vectors.filter(
      ({ sums }) => !programme.loses(Math.min(...sums.map((sum, r) => sum + ahead[r])) + rest),
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
function responseOf(programme, mask, most) {
  const masked = new Uint8Array(programme.length);
  for (const word of mask) masked[word] = 1;
  const n = programme.order;
  const ahead = [new Array(n).fill(0)];
  for (let i = programme.length - 1; i >= 0; i--) {
    const later = ahead[ahead.length - 1];
    ahead.push(
      masked[i]
        ? new Array(n).fill(later[0])
        : Array.from({ length: n }, (_, r) => programme.gain[i][r] + later[Math.min(r + 1, n - 1)]),
    );
  }
  return { ahead: ahead.reverse(), raised: raisedBy(revived(programme, masked), most) };
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
function smallest(fronts, programme) {
  let best = null;
  for (const { k, tag, vectors } of fronts.values()) {
    if (tag !== DONE) continue;
    for (const { sums, words } of vectors) {
      const least = Math.min(...sums);
      if (!programme.loses(least) && (!best || k < best.k || (k === best.k && least > best.least)))
        best = { k, least, words };
    }
  }
  if (!best) return null;
  const found = [];
  for (let link = best.words; link !== null; link = link.before) found.push(link.word);
  return found.reverse();
}
