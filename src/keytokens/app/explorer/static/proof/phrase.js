// The words of a document, the n-grams on them, and programs that are exact or bound the truth from one side
// (keytokens/proof/phrase.py). Masking is local only if each occurrence counts for itself, so a phi that is not
// additive is replaced by straight lines: supporters from below, opponents from above (pessimistic), or the other way
// round (optimistic).

import { recounted } from "./occurrences.js";
import { RunLengthProgram } from "./program.js";
import { extremesKeeping } from "./ranges.js";
import { ROUNDING, labelOf, reweighted, votesAgainst } from "./votes.js";

export class Phrase {
  /** {length, first, size, token (per occurrence), occurrences (per token), votes, phi}; `votes`: of the same tokens */
  constructor({ length, first, size, token, occurrences, votes, phi }) {
    Object.assign(this, { length, first, size, token, occurrences, votes, phi });
    this.order = size.reduce((a, b) => Math.max(a, b), 1);
    this.weight = occurrences.map((c) => this.phi.of(c));
    this.lastStep = occurrences.map((c, s) => this.weight[s] - this.phi.of(c - 1));
    this.rivals = this.votes.rivals.map((_, r) => r);
    this.cachedAgainst = [];
  }

  against(r) {
    return (this.cachedAgainst[r] ??= votesAgainst(this.votes, r));
  }

  /** Each occurrence counts for itself: an additive weighting, or no token that votes occurs twice. */
  isLocal(r) {
    return this.phi.additive || !this.occurrences.some((c, s) => c > 1 && this.votes.margin[r][s] !== 0);
  }

  /** Per occurrence: are all its words in `flags`? */
  inside(flags) {
    return this.first.map((start, o) => {
      for (let i = start; i < start + this.size[o]; i++) if (!flags[i]) return false;
      return true;
    });
  }

  /** How many occurrences of each token lie inside the words of `flags`. */
  inTokens(flags) {
    const counts = new Array(this.occurrences.length).fill(0);
    this.inside(flags).forEach((is, o) => {
      if (is) counts[this.token[o]]++;
    });
    return counts;
  }

  flags(words, value = 1) {
    const flags = new Uint8Array(this.length).fill(1 - value);
    for (const i of words) flags[i] = value;
    return flags;
  }

  /** Label of the masked text; null if nothing is left that has one. */
  labelAfter(mask) {
    const rest = recounted(this.votes, this.occurrences, this.inTokens(this.flags(mask, 0)), this.phi);
    return rest.tokens || rest.hasSink ? labelOf(rest) : null;
  }

  changes(mask) {
    const label = this.labelAfter(mask);
    return label !== null && label !== this.votes.label;
  }

  equalShares() {
    return this.token.map((s) => 1 / this.occurrences[s]);
  }

  /** Shares moved from the occurrences that a mask hits to those it misses. */
  movedShares(shares, mask, rate) {
    const flags = this.flags(mask, 0);
    const missed = this.inside(flags);
    const q = this.inTokens(flags);
    return shares.map((share, o) => {
      const s = this.token[o];
      const first = this.phi.of(q[s]) / this.weight[s];
      const target = missed[o] ? first / Math.max(q[s], 1) : (1 - first) / Math.max(this.occurrences[s] - q[s], 1);
      return (1 - rate) * share + rate * target;
    });
  }

  /** At most the true sum, whatever is masked. */
  pessimistic(r, shares) {
    return this.#straight(r, shares, 1);
  }

  /** At least the true sum, whatever is masked. */
  optimistic(r) {
    return this.#straight(r, this.equalShares(), -1);
  }

  /** At least the true sum too: each surviving occurrence of a supporter adds its first step. */
  fullVotes(r) {
    const program = this.optimistic(r);
    const h = this.against(r);
    const vote = this.token.map((s, o) => {
      const full = (h[s] / this.weight[s]) * this.phi.of(1);
      const cut = program.slack > 0 ? Math.min(full, (2 * program.slack) / ROUNDING) : full;
      return cut > 0 ? cut : program.vote[o];
    });
    return program.with({ vote, constant: h[h.length - 1] });
  }

  #straight(r, shares, below) {
    const h = this.against(r);
    const sink = h[h.length - 1];
    const slope = this.lastStep.map((step, s) => step / this.weight[s]);
    let neverLost = 0;
    let against = Math.max(-sink, 0);
    this.occurrences.forEach((c, s) => {
      if (!(h[s] * below > 0)) neverLost += h[s] * (1 - c * slope[s]);
      if (h[s] < 0) against -= h[s];
    });
    const vote = this.token.map((s, o) => {
      const one = (h[s] * below > 0 ? shares[o] : slope[s]) * h[s];
      return against > 0 ? Math.min(one, 2 * against) : one;
    });
    return new RunLengthProgram({
      length: this.length,
      first: this.first,
      size: this.size,
      vote,
      constant: neverLost + sink,
      strict: this.votes.strict[r],
      slack: ROUNDING * against,
      mayEmpty: this.votes.hasSink,
    });
  }

  /** The pessimistic program once the words of `flags` are never masked: what is inside them is sure of phi(q). */
  guarded(r, program, flags) {
    const h = this.against(r);
    const sure = this.inside(flags);
    const q = this.inTokens(flags);
    const part = q.map((count, s) => this.phi.of(count) / this.weight[s]);
    const concerned = q.map((count, s) => h[s] > 0 && count > 0);
    const vote = this.token.map((s, o) => {
      if (!concerned[s]) return program.vote[o];
      return sure[o] ? 0 : (h[s] * (1 - part[s])) / Math.max(this.occurrences[s] - q[s], 1);
    });
    const given = concerned.reduce((sum, is, s) => (is ? sum + h[s] * part[s] : sum), 0);
    return program.with({ vote, constant: program.constant + given });
  }

  /** Margins below which none goes, whichever words but the `kept` ones are masked: of each token a sure part stays. */
  leastKeeping(kept) {
    const q = this.inTokens(this.flags(kept));
    const part = q.map((count, s) => this.phi.of(count) / this.weight[s]);
    const share = [...part, ...part.map((sure) => 1 - sure)];
    const some = share.map((_, i) => i).filter((i) => share[i] > 0);
    const token = (i) => i % part.length;
    const items = reweighted(
      this.votes,
      some.map((i) => this.votes.logWeight[token(i)] + Math.log(share[i])),
      this.votes.margin.map((m) => some.map((i) => m[token(i)])),
    );
    const sure = part.filter((one) => one > 0).map((_, i) => i);
    return extremesKeeping(items, sure, -1);
  }

  /** The first occurrences of each token, as many as the token is named. */
  occurrencesOf(tokens) {
    const wanted = new Array(this.occurrences.length).fill(0);
    for (const s of tokens) wanted[s]++;
    return this.token.map((_, o) => o).filter((o) => wanted[this.token[o]] > 0 && wanted[this.token[o]]--);
  }
}
