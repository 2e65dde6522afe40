// Masking words as a walk along the text (keytokens/proof/masking.py): an n-gram that ends at word i survives iff the
// unmasked run that ends at i is at least as long, so the only state is the run length, capped at n - 1.
//
// Fewest words to keep: per number of kept words a front of vectors, the opponent's least sum for each run length;
// dominated ones are dropped, and so are those that lose to one of two fixed responses.

const CELLS = 4000000; // largest table of sums; beyond it prices give bounds
const STEPS = 4000000; // words read while a price is sought
const FIRST_LIMIT = 16; // masks tried at first; most texts need fewer

/** The votes of the n-grams of one text for the label against one rival, each occurrence for itself. */
export class RunLengthProgram {
  /** {length, first, size, vote (per occurrence), constant, strict, slack, mayEmpty} */
  constructor(fields) {
    Object.assign(this, fields);
    this.order = this.size.reduce((a, b) => Math.max(a, b), 1);
    const n = this.order;
    this.gain = Array.from({ length: this.length }, () => new Float64Array(n)); // A_i(r)
    this.known = Array.from({ length: this.length }, () => new Uint8Array(n));
    this.first.forEach((start, o) => {
      const end = start + this.size[o] - 1;
      this.gain[end][this.size[o] - 1] += this.vote[o];
      this.known[end][this.size[o] - 1] = 1;
    });
    for (let i = 0; i < this.length; i++) {
      for (let r = 1; r < n; r++) {
        this.gain[i][r] += this.gain[i][r - 1];
        this.known[i][r] |= this.known[i][r - 1];
      }
    }
  }

  with(fields) {
    return new RunLengthProgram({ ...this, ...fields });
  }

  loses(total) {
    return this.strict ? total <= this.slack : total < -this.slack;
  }

  near(total) {
    return this.slack > 0 && Math.abs(total) <= this.slack;
  }

  get bits() {
    return this.strict && !this.mayEmpty ? 2 : 1;
  }
}

const leastOf = (numbers) => numbers.reduce((a, b) => (b < a ? b : a), Infinity);

function whereLeast(length, number) {
  let best = 0;
  for (let r = 1; r < length; r++) if (number(r) < number(best)) best = r;
  return best;
}

/** Fewest masked words, at most `most`, that make the label lose: {words or null, lower, complete, tight}. */
export function fewestMasks(program, most) {
  const limit = Math.min(most, program.length);
  if (program.order === 1 || program.slack === 0) return byTable(program, limit, 1);
  const rows = [];
  let tight = false;
  for (const row of rowsOf(program, limit)) {
    const m = rows.length;
    if (m * row.length * (program.length + 1) > CELLS)
      return { words: null, lower: Math.max(m, 1), complete: false, tight };
    rows.push(row);
    const best = leastOf(row.map((sums) => sums[program.length]));
    tight ||= m > 0 && program.near(best);
    if (m > 0 && program.loses(best)) {
      const words = tracedRows(program, rows);
      if (program.bits === 1 || survives(program, words)) return { words, lower: m, complete: true, tight };
      return byTable(program, limit, m);
    }
  }
  return { words: null, lower: limit + 1, complete: true, tight };
}

/** For m = 0, 1, ...: least sums of the first i words with m masks, by run length, empty rests included. */
function* rowsOf(program, most) {
  const { gain, order: n, length: L } = program;
  const goingOn = new Float64Array(L);
  for (let i = 0, sum = 0; i < L; i++) goingOn[i] = sum += gain[i][n - 1];
  let before = new Float64Array(L + 1).fill(Infinity);
  for (let m = 0; m <= most; m++) {
    const row = Array.from({ length: n }, () => new Float64Array(L + 1).fill(Infinity));
    row[0].set(before.subarray(0, L), 1);
    if (m === 0) row[0][0] = program.constant;
    for (let r = 1; r < n - 1; r++) for (let i = 0; i < L; i++) row[r][i + 1] = row[r - 1][i] + gain[i][r - 1];
    let lowest = Infinity;
    for (let i = 0; i < L; i++) {
      lowest = Math.min(lowest, row[n - 2][i] + gain[i][n - 2] - goingOn[i]);
      row[n - 1][i + 1] = lowest + goingOn[i];
    }
    before = row[0].map((sum, i) => leastOf(row.map((sums) => sums[i])));
    yield row;
  }
}

/** The mask behind the best end of the last row. */
function tracedRows(program, rows) {
  const { gain, order: n, length: L } = program;
  const words = [];
  let m = rows.length - 1;
  let run = whereLeast(n, (r) => rows[m][r][L]);
  for (let i = L - 1; i >= 0; i--) {
    if (run === 0) {
      words.push(i);
      m--;
      run = whereLeast(n, (r) => rows[m][r][i]);
    } else if (run === n - 1) {
      const begins = rows[m][n - 2][i] + gain[i][n - 2],
        goesOn = rows[m][n - 1][i] + gain[i][n - 1];
      run = goesOn <= begins ? n - 1 : n - 2;
    } else run--;
  }
  return words.reverse();
}

/** Some known n-gram has no masked word. */
function survives({ first, size }, mask) {
  const masked = new Set(mask);
  return first.some((start, o) => {
    for (let i = start; i < start + size[o]; i++) if (masked.has(i)) return false;
    return true;
  });
}

/** The same, word by word, with the bit "something known survives" where it is needed and no subtraction. */
function byTable(program, most, least) {
  let tight = false;
  let lower = least;
  for (const limit of limitsOf(program, most)) {
    const table = sweep(program, limit);
    const last = table[program.length][program.bits - 1];
    for (let m = lower; m <= limit; m++) {
      const end = leastOf(last.map((sums) => sums[m]));
      tight ||= program.near(end);
      if (program.loses(end)) return { words: tracedTable(program, table, m), lower: m, complete: true, tight };
    }
    lower = Math.max(lower, limit + 1);
  }
  return { words: null, lower, complete: lower > most, tight };
}

/** How many masks to allow, growing while the table fits. */
function* limitsOf(program, most) {
  let limit = 0;
  while (limit < most) {
    limit = Math.min(Math.max(FIRST_LIMIT, 4 * limit), most);
    if (program.bits * program.order * (program.length + 1) * (limit + 1) > CELLS) return;
    yield limit;
  }
}

/** table[i][bit][run][masks]: least sum of the first i words. */
function sweep(program, limit) {
  const { order: n, bits, length: L, gain, known } = program;
  const blank = () =>
    Array.from({ length: bits }, () => Array.from({ length: n }, () => new Float64Array(limit + 1).fill(Infinity)));
  const table = [blank()];
  table[0][0][0][0] = program.constant;
  for (let i = 0; i < L; i++) {
    const old = table[i],
      now = blank();
    for (let b = 0; b < bits; b++) {
      for (let r = 0; r < n; r++) {
        const into = now[bits === 2 && known[i][r] ? 1 : b][Math.min(r + 1, n - 1)];
        const masked = now[b][0];
        for (let m = 0; m <= limit; m++) {
          const kept = old[b][r][m] + gain[i][r];
          if (kept < into[m]) into[m] = kept;
          if (m < limit && old[b][r][m] < masked[m + 1]) masked[m + 1] = old[b][r][m];
        }
      }
    }
    table.push(now);
  }
  return table;
}

/** The mask behind the best sum with m masks: the same additions are redone, so equality is exact. */
function tracedTable(program, table, most) {
  const { order: n, length: L } = program;
  let m = most;
  let bit = program.bits - 1;
  let run = whereLeast(n, (r) => table[L][bit][r][m]);
  const words = [];
  for (let i = L - 1; i >= 0; i--) {
    const step = stepBack(program, table, i, bit, run, m);
    ({ bit, run } = step);
    if (step.masked) {
      words.push(i);
      m--;
    }
  }
  return words.reverse();
}

function stepBack({ order: n, known, gain }, table, i, bit, run, m) {
  const value = table[i + 1][bit][run][m];
  const old = table[i];
  for (let r = 0; r < n; r++) {
    if (Math.min(r + 1, n - 1) !== run) continue;
    for (let b = bit === 1 && known[i][r] ? 0 : bit; b <= bit; b++) {
      if (old[b][r][m] + gain[i][r] === value) return { bit: b, run: r, masked: false };
    }
  }
  return { bit, run: whereLeast(n, (r) => old[bit][r][m - 1]), masked: true };
}

/** Least sum over all masks that spare the words `kept` (flags by word). */
export function leastSum(program, kept) {
  let sums = [program.constant, ...Array(program.order - 1).fill(Infinity)];
  for (let i = 0; i < program.length; i++) {
    const lowest = kept[i] ? Infinity : leastOf(sums);
    sums = advanced(sums, program.gain[i]);
    if (lowest < sums[0]) sums[0] = lowest;
  }
  return leastOf(sums);
}

/** Least sums per run length after a word that is not masked. */
export function advanced(sums, row) {
  const n = sums.length;
  if (n === 1) return [sums[0] + row[0]];
  const next = new Array(n).fill(Infinity);
  for (let r = 0; r < n; r++) {
    const q = Math.min(r + 1, n - 1);
    next[q] = Math.min(next[q], sums[r] + row[r]);
  }
  return next;
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
    const { cost, words } = priced(program, price);
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

/** Least sum plus price times masks, and its mask. */
function priced(program, price) {
  const n = program.order;
  let sums = [program.constant, ...Array(n - 1).fill(Infinity)];
  const trail = [];
  for (const row of program.gain) {
    const source = whereLeast(n, (r) => sums[r]);
    const masked = sums[source] + price;
    const kept = sums.map((sum, r) => sum + row[r]);
    if (n === 1) {
      trail.push([source, Number(masked < kept[0])]);
      sums = [Math.min(masked, kept[0])];
    } else {
      const longest = kept[n - 1] <= kept[n - 2] ? n - 1 : n - 2;
      trail.push([source, longest]);
      sums = [masked, ...kept.slice(0, n - 2), kept[longest]];
    }
  }
  const run = whereLeast(n, (r) => sums[r]);
  return { cost: sums[run], words: walkedBack(trail, run, n) };
}

/** A mask with the least sum of all. */
export function cheapestMask(program) {
  return priced(program, 0).words;
}

function walkedBack(trail, last, n) {
  const words = [];
  let run = last;
  for (let i = trail.length - 1; i >= 0; i--) {
    const [source, choice] = trail[i];
    if (n === 1 ? choice : run === 0) {
      words.push(i);
      run = source;
    } else if (n > 1) run = run === n - 1 ? choice : run - 1;
  }
  return words.reverse();
}

const VECTORS = 40000; // work limit: vectors extended in one search
const DONE = -1; // the kept words spell something known by themselves, or need not

/** {words or null, complete}: fewest words, at most `most`, that no masking of the others can overcome. */
export function fewestKeptWords(program, most) {
  const needed = !program.strict && !program.mayEmpty;
  const responses = [cheapestMask(program), []].map((mask) => responseOf(program, mask, most));
  const start = [program.constant, ...Array(program.order - 1).fill(Infinity)];
  let fronts = new Map([
    [`0,${needed ? 0 : DONE}`, { k: 0, tag: needed ? 0 : DONE, vectors: [{ sums: start, words: null }] }],
  ]);
  let work = 0;
  for (let i = 0; i < program.length; i++) {
    for (const { vectors } of fronts.values()) work += vectors.length;
    if (work > VECTORS) return { words: null, complete: false };
    fronts = extended(fronts, program, i, most);
    for (const { ahead, raised } of responses) keepHopeful(fronts, program, ahead[i + 1], raised[i + 1], most);
    for (const front of fronts.values()) front.vectors = undominated(front.vectors);
  }
  return { words: smallest(fronts, program), complete: true };
}

function extended(fronts, program, i, most) {
  const fresh = new Map();
  const frontAt = (k, tag) => {
    const key = `${k},${tag}`;
    if (!fresh.has(key)) fresh.set(key, { k, tag, vectors: [] });
    return fresh.get(key).vectors;
  };
  for (const { k, tag, vectors } of fronts.values()) {
    const free = frontAt(k, tag === DONE ? DONE : 0);
    const spells = tag === DONE || program.known[i][tag];
    const kept = k < most ? frontAt(k + 1, spells ? DONE : Math.min(tag + 1, program.order - 1)) : null;
    for (const { sums, words } of vectors) {
      const stay = advanced(sums, program.gain[i]);
      if (kept) kept.push({ sums: stay, words: { before: words, word: i } });
      free.push({ sums: [Math.min(...sums, stay[0]), ...stay.slice(1)], words });
    }
  }
  return fresh;
}

/** Drops the vectors that lose to this response. */
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
  const n = program.order;
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
