// The model itself: f = C(w b) / (C w + w0) + c with w = exp(a), in double precision and in Python's order of sums.

import { argmax } from "./numbers.js";
import { weightingOf } from "./weighting.js";
import { classTable, readWords } from "./words.js";

export class Model {
  /** From a container: see keytokens/app/explorer/pack.py for what it holds. */
  constructor({ facts, arrays }) {
    this.facts = facts;
    this.sentences = facts.sentences; // templates by name: see keytokens/explain/sentences.json
    this.classes = facts.classes; // [{name, quoted, value}]
    this.two = facts.classes.length === 2;
    this.weighting = weightingOf(facts.weighting);
    this.order = facts.order;
    this.tokens = facts.tokens.length ? facts.tokens.split("\n") : [];
    this.size = this.tokens.length;
    this.attention = Float64Array.from(arrays.attention);
    this.values = centred(arrays.values, this.size, this.two ? 1 : this.classes.length);
    this.intercept = facts.intercept;
    this.empty = facts.empty;
    this.logSink = facts.log_sink === null ? -Infinity : facts.log_sink;
    this.meanAttention = arrays.mean_attention;
    this.classCounts = arrays.class_counts; // (K, V)
    this.table = classTable(facts.alphabet);
    this.column = new Map();
    for (let s = 0; s < this.size; s++) this.column.set(this.tokens[s], s);
    this.weights = this.sharedWeights();
  }

  /** With one shift for all texts, if no weight comes near underflow; else null, and each text has its own. */
  sharedWeights() {
    let top = this.logSink;
    let low = this.logSink > -Infinity ? this.logSink : Infinity;
    for (const a of this.attention) {
      if (a > top) top = a;
      if (a < low) low = a;
    }
    if (!(top - low < 600)) return this.size ? null : { w: this.attention, wB: this.values, sink: 1 };
    const w = this.attention.map((a) => Math.exp(a - top));
    const wB = this.values.map((b) => b.map((value, s) => w[s] * value));
    return { w, wB, sink: Math.exp(this.logSink - top) };
  }

  /** The sentence of this name with its facts filled in. */
  said(name, facts = {}) {
    return this.sentences[name].replace(/\{(\w+)\}/g, (_, key) => facts[key]);
  }

  /** Value of token s for class k, intercept folded in; of two classes the first has 0. */
  value(s, k) {
    if (this.two) return k === 0 ? 0 : this.values[0][s] + this.intercept[0];
    return this.values[k][s] + this.intercept[k];
  }

  intercepts() {
    return this.two ? [0, this.intercept[0]] : this.intercept;
  }

  /** The words of a text and the known n-grams on them; `hidden` (a Set of word numbers) are read as masks. */
  read(text, hidden = null) {
    const words = readWords(text, this.table);
    const first = [],
      size = [],
      token = [],
      columns = [],
      occurrences = [];
    const seen = new Map();
    const forms = words.map((word, i) => (hidden && hidden.has(i) ? null : word.form));
    for (let i = 0; i < forms.length; i++) {
      let key = "";
      for (let n = 1; n <= this.order && i + n <= forms.length; n++) {
        const form = forms[i + n - 1];
        if (form === null) break;
        key = n === 1 ? form : `${key} ${form}`;
        const s = this.column.get(key);
        if (s === undefined) continue;
        let t = seen.get(s);
        if (t === undefined) {
          t = columns.length;
          seen.set(s, t);
          columns.push(s);
          occurrences.push(0);
        }
        first.push(i);
        size.push(n);
        token.push(t);
        occurrences[t]++;
      }
    }
    return { text, words, first, size, token, columns, occurrences };
  }

  /** The scores of a text, one a class (of two classes the first is 0), added in the order of the columns. */
  scores({ columns, occurrences }) {
    const order = columns.map((_, t) => t).sort((i, j) => columns[i] - columns[j]);
    const own = this.weights;
    let weight;
    let sink;
    if (own) {
      weight = (t) => own.w[columns[t]];
      sink = own.sink;
    } else {
      let top = this.logSink;
      for (const s of columns) top = Math.max(top, this.attention[s]);
      if (top === -Infinity) top = 0;
      weight = (t) => Math.exp(this.attention[columns[t]] - top);
      sink = Math.exp(this.logSink - top);
    }
    let total = 0;
    for (const t of order) total += this.weighting.of(occurrences[t]) * weight(t);
    total += sink;
    const scores = this.values.map((b, k) => {
      if (!(total > 0)) return this.empty[k];
      let sum = 0;
      for (const t of order) {
        const wb = own ? own.wB[k][columns[t]] : weight(t) * b[columns[t]];
        sum += this.weighting.of(occurrences[t]) * wb;
      }
      return sum / total + this.intercept[k];
    });
    return this.two ? [0, scores[0]] : scores;
  }

  /** A probability as the model says it: a share of the labels is taken for drawn by lot. */
  chance(p) {
    const { noise } = this.facts;
    return noise ? (1 - noise) * p + noise / this.classes.length : p;
  }

  /** {label, probabilities, scores} of what `read` gave. */
  predict(read) {
    const scores = this.scores(read);
    const probabilities = softmax(scores).map((p) => this.chance(p));
    return { label: argmax(probabilities), probabilities, scores };
  }
}

export function softmax(scores) {
  const top = Math.max(...scores);
  const e = scores.map((f) => Math.exp(f - top));
  const total = e.reduce((sum, x) => sum + x, 0);
  return e.map((x) => x / total);
}

/** Values by class. Of more than two classes those of a token sum to 0, as in every prediction of Python's. */
function centred(flat, size, rows) {
  const values = Array.from({ length: rows }, (_, k) => Float64Array.from(flat.subarray(k * size, (k + 1) * size)));
  if (rows > 1) {
    for (let s = 0; s < size; s++) {
      let mean = 0;
      for (const b of values) mean += b[s];
      mean /= rows;
      for (const b of values) b[s] -= mean;
    }
  }
  return values;
}
