// Why one text gets its label: the record that the views show, with the same fields and the same sentence as
// keytokens/explain. Everything but the words and the probability is computed when it is first asked for.

import { argmax } from "./numbers.js";
import { Phrase } from "./proof/phrase.js";
import { extremesKeeping, probabilityOf, probabilityWithout, rangesDeleting } from "./proof/ranges.js";
import { sentencesOf } from "./proof/sentence.js";
import { NOTHING, flipTokens, sufficientTokens } from "./proof/tokens.js";
import { votesOf } from "./proof/votes.js";
import { NO_WORDS, flipWords, sufficientWords } from "./proof/words.js";

export const DELETIONS = [1, 2, 3, 5, 10]; // for how many deleted tokens the range of the probability is given

export class Explanation {
  #made = {};

  constructor(model, text, hidden = null) {
    this.model = model;
    this.text = text;
    this.hidden = hidden; // a Set of word numbers that are read as masks, or null
    this.read = model.read(text, hidden);
    Object.assign(this, model.predict(this.read)); // label, probabilities, scores
    this.explained = model.two ? 1 : this.label; // the class whose score the contributions add up to
    this.logit = this.scores[this.explained];
    this.probability = this.probabilities[this.label];
  }

  #once(name, make) {
    if (!(name in this.#made)) this.#made[name] = make();
    return this.#made[name];
  }

  get words() {
    return this.read.words;
  }

  /** Names of the distinct tokens, in order of first occurrence. */
  get names() {
    return this.#once("names", () => this.read.columns.map((s) => this.model.tokens[s]));
  }

  get logWeight() {
    const { columns, occurrences } = this.read;
    const { attention, weighting } = this.model;
    return this.#once("logWeight", () => columns.map((s, t) => Math.log(weighting.of(occurrences[t])) + attention[s]));
  }

  /** K arrays: the value of each token for each class, intercept folded in. */
  get values() {
    const { model, read } = this;
    return this.#once("values", () => model.classes.map((_, k) => read.columns.map((s) => model.value(s, k))));
  }

  /** Attention of each token, last of the sink; they add up to 1. */
  get attention() {
    return this.#once("attention", () => {
      const logs = [...this.logWeight, this.model.logSink];
      const top = logs.reduce((a, b) => Math.max(a, b), -Infinity);
      if (top === -Infinity) return logs.map(() => 0);
      const W = logs.map((a) => Math.exp(a - top));
      const total = W.reduce((sum, w) => sum + w, 0);
      return W.map((w) => w / total);
    });
  }

  /** Attention times value, for the explained class, of each token. */
  get contributions() {
    return this.#once("contributions", () => this.values[this.explained].map((v, t) => this.attention[t] * v));
  }

  /** The sink's own contribution. */
  get sink() {
    return this.attention[this.attention.length - 1] * this.model.intercepts()[this.explained];
  }

  /** The class that the label is set against: where the flip set leads, else the runner-up. */
  get rival() {
    return this.#once("rival", () => {
      const others = this.probabilities.map((p, k) => (k === this.label ? -1 : p));
      return this.flip.labelAfter ?? argmax(others);
    });
  }

  /** Per token, its contribution to a class minus that to a rival; with `lean` they add up to the lead. */
  against(rival, label = this.label) {
    return this.values[label].map((v, t) => this.attention[t] * (v - this.values[rival][t]));
  }

  /** The lead of a class over a rival that no word brings: how common the classes are. */
  lean(rival, label = this.label) {
    const own = this.model.intercepts();
    return this.attention[this.attention.length - 1] * (own[label] - own[rival]);
  }

  /** Every occurrence of a known token, in text order. */
  get uses() {
    return this.#once("uses", () => {
      const { words, first, size, token, occurrences } = this.read;
      return token.map((t, o) => ({
        token: t,
        text: this.names[t],
        start: words[first[o]].start,
        end: words[first[o] + size[o] - 1].end,
        attention: this.attention[t] / occurrences[t],
        value: this.values[this.explained][t],
        contribution: this.contributions[t] / occurrences[t],
      }));
    });
  }

  get votes() {
    return this.#once("votes", () =>
      votesOf(this.logWeight, this.values, this.label, this.model.logSink, this.model.intercepts()),
    );
  }

  get sufficient() {
    return this.#once("sufficient", () => (this.names.length ? sufficientTokens(this.votes) : NOTHING));
  }

  get flip() {
    return this.#once("flip", () => (this.names.length ? flipTokens(this.votes) : NOTHING));
  }

  get phrase() {
    const { read, votes, model } = this;
    return this.#once("phrase", () => new Phrase({ ...read, length: read.words.length, votes, phi: model.weighting }));
  }

  /** Fewest words that fix the label, whatever other words are masked: `positions` are numbers of words. */
  get sufficientWords() {
    return this.#once("sufficientWords", () => (this.names.length ? sufficientWords(this.phrase) : NO_WORDS));
  }

  /** Fewest words to mask so that the label changes. */
  get flipWords() {
    return this.#once("flipWords", () => (this.names.length ? flipWords(this.phrase) : NO_WORDS));
  }

  /** The probability of the label from its margins over all rivals, as the model says it. */
  #chanceOf(margins) {
    return this.model.chance(probabilityOf(margins));
  }

  /** Least probability of the label, whatever is deleted outside the sufficient set. */
  get atLeast() {
    return this.#once("atLeast", () => this.#chanceOf(extremesKeeping(this.votes, this.sufficient.indices, -1)));
  }

  /** [least, greatest] of these probabilities. */
  get keeping() {
    if (!this.names.length) return null;
    return [this.atLeast, this.#chanceOf(extremesKeeping(this.votes, this.sufficient.indices, 1))];
  }

  /** The same when at most m tokens are deleted: [[m, least, greatest], ...]. */
  get deleting() {
    return this.#once("deleting", () => {
      if (!this.names.length) return [];
      const ends = rangesDeleting(this.votes, DELETIONS);
      const side = (i, end) => this.#chanceOf(ends[i].map((both) => both[end]));
      return DELETIONS.map((m, i) => [m, side(i, 0), side(i, 1)]);
    });
  }

  get probabilityAfterFlip() {
    if (this.flip.status === "none") return null;
    return this.model.chance(probabilityWithout(this.votes, this.flip.indices));
  }

  get tight() {
    return this.sufficient.tight || this.flip.tight;
  }

  /** What is proved, in sentences {because, keep, change, limit}: word for word the certificate's of Python. */
  get said() {
    return this.#once("said", () => sentencesOf(this));
  }

  /** The same, in one paragraph. */
  get sentence() {
    return Object.values(this.said).filter(Boolean).join(" ");
  }

  /** Plain data, with the names of Python's record. */
  toJSON() {
    const name = (k) => (k === null ? null : this.model.classes[k].value);
    const set = (found) => ({
      items: found.indices.map((t) => this.names[t]),
      size: found.size,
      lower: found.lower,
      status: found.status,
      tight: found.tight,
      label_after: name(found.labelAfter),
    });
    return {
      label: name(this.label),
      probability: this.probability,
      probabilities: this.probabilities,
      logit: this.logit,
      sink: this.sink,
      words: this.words.map((word) => word.form),
      tokens: this.uses.map(({ text, attention, value, contribution }) => ({ text, attention, value, contribution })),
      sufficient: set(this.sufficient),
      flip: set(this.flip),
      keeping: this.keeping,
      deleting: this.deleting,
      probability_after_flip: this.probabilityAfterFlip,
      sentence: this.sentence,
    };
  }
}
