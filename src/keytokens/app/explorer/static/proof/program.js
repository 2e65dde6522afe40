// One dynamic program over the words of a text (keytokens/proof/program.py): an n-gram that ends at word i survives iff
// the run of unchanged words that ends at i is at least as long, so the only state is the run length, capped at n - 1.
// Changing word i leads to run 0 and adds change[i]: 0 for a masked word, Infinity for one that must stay, or a price.

/** The votes of the n-grams of one text for the label against one rival, each occurrence for itself. */
export class RunLengthProgram {
  /** {length, first, size, vote (per occurrence), constant, strict, slack, mayEmpty} */
  constructor(fields) {
    Object.assign(this, fields);
    this.runs = this.size.reduce((a, b) => Math.max(a, b), 2);
    const n = this.runs;
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

  get start() {
    return [this.constant, ...Array(this.runs - 1).fill(Infinity)];
  }

  loses(total) {
    return this.strict ? total <= this.slack : total < -this.slack;
  }

  near(total) {
    return this.slack > 0 && Math.abs(total) <= this.slack;
  }

  /** Some known n-gram has none of these words. */
  survives(words) {
    const gone = new Set(words);
    return this.first.some((start, o) => {
      for (let i = start; i < start + this.size[o]; i++) if (gone.has(i)) return false;
      return true;
    });
  }

  /** table[i][run]: least sum of the first i words, by the run that ends there; changing word i adds change(i). */
  walked(change) {
    const table = [this.start];
    this.gain.forEach((row, i) => table.push([leastOf(table[i]) + change(i), ...stayed(table[i], row)]));
    return table;
  }

  /** For m = 0, 1, ..., most changed words what `walked` gives, added in Python's order: ties fall alike. */
  *counted(change, most) {
    const n = this.runs;
    let total = 0;
    const goingOn = this.gain.map((row) => (total += row[n - 1]));
    let before = Array(this.length + 1).fill(Infinity);
    for (let m = 0; m <= most; m++) {
      const table = [m === 0 ? this.start : Array(n).fill(Infinity)];
      let longest = Infinity; // of the sums that end in the longest run, less what always goes on
      this.gain.forEach((row, i) => {
        const sums = table[i].slice(0, n - 1).map((sum, r) => sum + row[r]);
        longest = Math.min(longest, sums.pop() - goingOn[i]);
        table.push([before[i] + change(i), ...sums, longest + goingOn[i]]);
      });
      before = table.map(leastOf);
      yield table;
    }
  }

  /** The words that were changed on the way to the best end of the last table: one of `walked`, or of `counted`. */
  changed(tables) {
    const n = this.runs;
    const words = [];
    let m = tables.length - 1;
    let run = whereLeast(tables[m][this.length]);
    for (let i = this.length - 1; i >= 0; i--) {
      const here = tables[m][i];
      if (run === 0) {
        words.push(i);
        m = Math.max(m - 1, 0);
        run = whereLeast(tables[m][i]);
      } else if (run < n - 1) run--;
      else run = here[n - 1] + this.gain[i][n - 1] <= here[n - 2] + this.gain[i][n - 2] ? n - 1 : n - 2;
    }
    return words.reverse();
  }
}

/** Least sums by run 1, 2, ... after a word that stays: the two longest runs become one. */
export function stayed(sums, row) {
  const after = sums.map((sum, r) => sum + row[r]);
  const longest = after.pop();
  if (longest < after[after.length - 1]) after[after.length - 1] = longest;
  return after;
}

export function leastOf(numbers) {
  return numbers.reduce((a, b) => (b < a ? b : a), Infinity);
}

function whereLeast(numbers) {
  return numbers.reduce((best, number, r) => (number < numbers[best] ? r : best), 0);
}
