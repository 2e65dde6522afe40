// One explained text: label, proof, highlighted text, sets, contributions, ranges, and ways to take it along.

import { bar, download, foreign, h, replace, tableOf } from "./dom.js";
import { chance, figure, highEnd, lowEnd, oneLine, several, signed, whole } from "./format.js";
import { usesOver } from "./marks.js";
import { pictureOf, savePng, saveSvg } from "./picture.js";
import { TextView } from "./text.js";

const STRONGEST = 12; // tokens shown on each side
const CHIPS = 24; // items of a set that are shown at once
const BARS = 12; // classes shown at once
const MOST_WORDS = 1500; // of a text whose sets of words are computed here
const PAUSE = 250; // milliseconds without a change before they are

export class Panel {
  /** onWord(word number) and onMask(word numbers), if words can be masked. */
  constructor({ onWord = null, onMask = null } = {}) {
    this.onMask = onMask;
    this.head = h("div", { class: "verdict" });
    this.proof = h("p", { class: "proof" });
    this.legend = h("p", { class: "legend" });
    this.inspector = h("div", { class: "inspector", "aria-live": "polite" });
    this.view = new TextView({
      label: onWord ? "The text; press Enter on a word to mask it" : "The text; arrow keys move from word to word",
      onInspect: (i) => this.inspect(i),
      onWord,
    });
    this.sets = h("div", { class: "columns" });
    this.words = folded("The same in words: fewest to keep, fewest to mask", () => this.#wordSets());
    this.more = folded("Contributions", () => this.#contributions());
    this.ranges = folded("Range of the probability when tokens are deleted", () => this.#ranges());
    this.element = h(
      "div",
      { class: "panel" },
      this.head,
      this.proof,
      this.legend,
      this.view.element,
      this.inspector,
      this.sets,
      this.words,
      this.more,
      this.ranges,
      this.#exports(),
    );
  }

  show(e, { hidden = null, truth = null } = {}) {
    this.e = e;
    replace(this.head, ...verdict(e, truth));
    this.proof.textContent = e.sentence;
    const says = `${e.model.two || e.label} ${e.names.length > 0}`; // the legend changes with these alone
    if (says !== this.legendSays) replace(this.legend, legendOf(e, this.view.onWord !== null));
    this.legendSays = says;
    this.view.show(e, hidden);
    this.hidden = hidden;
    replace(this.sets, setOf(e, "Sufficient set", e.sufficient, "kept"), setOf(e, "Flip set", e.flip, "gone"));
    this.inspect(null);
    this.more.renew();
    this.ranges.renew();
    clearTimeout(this.later); // these may take longer than a frame: only when the typing pauses
    this.later = setTimeout(() => this.words.renew(), this.words.open ? PAUSE : 0);
  }

  /** What the tokens over a word say. */
  inspect(i) {
    const e = this.e;
    if (i === null || !e) {
      replace(
        this.inspector,
        h("p", { class: "soft" }, "Point at a word, or move to it with the arrow keys, to see its tokens."),
      );
      return;
    }
    const uses = usesOver(e, i);
    const word = oneLine(e.text.slice(e.words[i].start, e.words[i].end));
    if (this.hidden && this.hidden.has(i)) {
      replace(this.inspector, h("p", null, foreign(word), " is masked: no token touches it."));
    } else if (!uses.length) {
      replace(this.inspector, h("p", null, foreign(word), " is in no token that the model knows."));
    } else {
      replace(this.inspector, h("ul", { class: "uses" }, uses.map(useLine)));
    }
  }

  /** Sets of words: masking a word removes every token that touches it and makes no new one. */
  #wordSets() {
    const { e } = this;
    if (!e.names.length) return [h("p", { class: "soft" }, "The text has no known token.")];
    if (e.words.length > MOST_WORDS) {
      return [
        h(
          "p",
          { class: "soft" },
          `Left out, because the text has more than ${whole(MOST_WORDS)} words. In Python, explanation.flip_words computes it.`,
        ),
      ];
    }
    const kept = e.sufficientWords,
      gone = e.flipWords;
    const others = new Set(kept.positions);
    const rest = e.words.map((_, i) => i).filter((i) => !others.has(i));
    return [
      h(
        "div",
        { class: "columns" },
        this.#wordSet(
          "Sufficient words",
          kept,
          "Whatever other words are masked, the label stays.",
          "Mask all others",
          rest,
        ),
        this.#wordSet(
          "Flip words",
          gone,
          `Masking ${gone.size === 1 ? "it" : "them"} changes the label.`,
          gone.size === 1 ? "Mask it" : "Mask them",
          gone.positions,
        ),
      ),
      h("p", { class: "soft" }, "Masking a word removes every token that touches it and makes no new one."),
    ];
  }

  #wordSet(title, found, does, button, masked) {
    const { e } = this;
    const chips = found.positions
      .slice(0, CHIPS)
      .map((i) => h("li", { class: "chip plain" }, foreign(oneLine(e.text.slice(e.words[i].start, e.words[i].end)))));
    const rest = found.positions.length - CHIPS;
    const says = setLine(e, found, "masking of words", "word", e.words.length);
    const mask =
      this.onMask && found.positions.length
        ? h("button", { type: "button", click: () => this.onMask(masked) }, button)
        : null;
    return h(
      "section",
      null,
      h("h3", null, title),
      h("p", { class: "soft" }, says, found.positions.length ? ` ${does}` : ""),
      h("ul", { class: "chips" }, chips, rest > 0 ? h("li", { class: "soft" }, `and ${whole(rest)} more`) : null),
      mask,
    );
  }

  #contributions() {
    const [positive, negative] = sides(this.e);
    const totals = this.e.names.map((name, t) => ({
      name,
      times: this.e.read.occurrences[t],
      attention: this.e.attention[t],
      value: this.e.values[this.e.explained][t],
      contribution: this.e.contributions[t],
    }));
    const up = totals.filter((one) => one.contribution > 0).sort((a, b) => b.contribution - a.contribution);
    const down = totals.filter((one) => one.contribution < 0).sort((a, b) => a.contribution - b.contribution);
    const sink = this.e.sink ? `, with the sink's own ${signed(this.e.sink)},` : "";
    return [
      h(
        "p",
        { class: "soft" },
        `A contribution is attention times value. All of them${sink} add up to the logit ${signed(this.e.logit)}.`,
      ),
      h("div", { class: "columns" }, strongest(positive, up, "p"), strongest(negative, down, "n")),
    ];
  }

  #ranges() {
    const { e } = this;
    const rows = e.deleting.map(([m, low, high]) => [`at most ${several(m, "token")}`, lowEnd(low), highEnd(high)]);
    if (!rows.length) return [h("p", { class: "soft" }, "The text has no known token.")];
    rows.push(["all or any outside the sufficient set", lowEnd(e.keeping[0]), highEnd(e.keeping[1])]);
    const exact = e.model.two ? "Exact." : "Bounds: the truth lies between them.";
    return [
      h(
        "p",
        { class: "soft" },
        "Probability of ",
        foreign(e.model.classes[e.label].name),
        ` after deleting whichever tokens. ${exact}`,
      ),
      tableOf(null, ["deleted", "least", "greatest"], rows),
    ];
  }

  /** This panel as a page of its own, without a script. */
  standalone() {
    const content = this.element.cloneNode(true);
    content.querySelectorAll(".exports, .inspector, .hint, details:not([open])").forEach((part) => part.remove());
    content.querySelectorAll(".pressable").forEach((part) => part.classList.remove("pressable"));
    content.querySelectorAll(".w[tabindex]").forEach((word) => {
      for (const name of ["role", "tabindex", "aria-pressed"]) word.removeAttribute(name);
    });
    const { classes } = this.e.model;
    return pageOf(`${classes[this.e.label].name} (${chance(this.e.probability)})`, content);
  }

  #exports() {
    const button = (name, save) => h("button", { type: "button", click: save }, name);
    return h(
      "div",
      { class: "exports", role: "group", "aria-label": "Save this explanation" },
      h("span", { class: "soft" }, "Save this explanation:"),
      button("HTML", () => download("explanation.html", "text/html", this.standalone())),
      button("SVG", () => saveSvg(pictureOf(this.e, this.hidden))),
      button("PNG", () => savePng(pictureOf(this.e, this.hidden))),
    );
  }
}

/** What stands alone: the style is that of this page, and so is its hash in the policy. */
function pageOf(title, content) {
  const style = document.querySelector("style").textContent;
  const given = document.querySelector('meta[http-equiv="Content-Security-Policy"]').content;
  const policy = `default-src 'none'; ${given.match(/style-src [^;]*/)[0]}; base-uri 'none'; form-action 'none'`;
  const page = document.implementation.createHTMLDocument(title);
  page.documentElement.lang = "en";
  page.head.prepend(
    h("meta", { charset: "utf-8" }),
    h("meta", { "http-equiv": "Content-Security-Policy", content: policy }),
    h("meta", { name: "viewport", content: "width=device-width, initial-scale=1" }),
    h("style", null, style),
  );
  page.body.append(h("main", null, content));
  return `<!DOCTYPE html>\n${page.documentElement.outerHTML}\n`;
}

/** A part that is computed when it is open. */
function folded(title, make) {
  const body = h("div");
  const element = h("details", { toggle: () => element.renew() }, h("summary", null, title), body);
  element.renew = () => {
    if (element.open) replace(body, make());
  };
  return element;
}

/** What a positive and what a negative contribution speak for: [elements]. */
export function sides(e) {
  const name = (k) => foreign(e.model.classes[k].name);
  if (e.model.two)
    return [
      ["for ", name(1)],
      ["for ", name(0)],
    ];
  return [
    ["for ", name(e.label)],
    ["against ", name(e.label)],
  ];
}

function verdict(e, truth) {
  const order = e.probabilities.map((_, k) => k);
  if (!e.model.two) order.sort((i, j) => e.probabilities[j] - e.probabilities[i]);
  const side = (k) => (e.model.two ? (k === 1 ? "p" : "n") : k === e.label ? "p" : "k");
  const rows = order
    .slice(0, BARS)
    .map((k) =>
      h(
        "li",
        null,
        foreign(oneLine(e.model.classes[k].name, 30), { class: "class-name" }),
        bar(e.probabilities[k], side(k)),
        h("span", { class: "num" }, chance(e.probabilities[k])),
      ),
    );
  const rest =
    order.length > BARS
      ? h("li", { class: "soft" }, `and ${several(order.length - BARS, "class", "classes")} less likely`)
      : null;
  return [
    h(
      "div",
      null,
      h("p", { class: "soft" }, "Predicted label"),
      h("p", { class: "label" }, foreign(e.model.classes[e.label].name)),
      h(
        "p",
        { class: "soft" },
        "probability ",
        h("b", null, chance(e.probability)),
        " · logit ",
        h("b", null, signed(e.logit)),
      ),
      truth,
    ),
    h("ul", { class: "classes", "aria-label": "Probability of each class" }, rows, rest),
  ];
}

function legendOf(e, maskable) {
  if (!e.names.length) return [h("span", null, "No word of this text is known to the model.")];
  const [positive, negative] = sides(e);
  return [
    h("span", null, h("b", { class: "p4" }, "blue, upright"), " speaks ", positive),
    h("span", null, h("b", { class: "n4" }, "orange, slanted"), " speaks ", negative),
    h("span", null, h("b", { class: "kept" }, "solid line"), " sufficient set"),
    h("span", null, h("b", { class: "gone" }, "dotted line"), " flip set"),
    h("span", null, h("b", { class: "unknown" }, "grey"), " not known"),
    maskable ? h("span", { class: "hint" }, "click a word to mask it") : null,
  ];
}

function useLine(use) {
  return h(
    "li",
    null,
    foreign(oneLine(use.text)),
    `: attention ${figure(use.attention)} × value ${signed(use.value)} = contribution ${signed(use.contribution)}`,
  );
}

function setOf(e, title, found, kind) {
  const chips = found.indices
    .slice(0, CHIPS)
    .map((t) =>
      h(
        "li",
        { class: `chip ${e.contributions[t] >= 0 ? "p" : "n"}` },
        foreign(oneLine(e.names[t])),
        " ",
        h("span", { class: "num" }, signed(e.contributions[t])),
      ),
    );
  const rest = found.indices.length - CHIPS;
  return h(
    "section",
    { class: "set" },
    h("h3", null, h("span", { class: kind }, title)),
    h("p", { class: "soft" }, sizeLine(e, found, kind)),
    h("ul", { class: "chips" }, chips, rest > 0 ? h("li", { class: "soft" }, `and ${whole(rest)} more`) : null),
  );
}

function sizeLine(e, found, kind) {
  if (!e.names.length) return "None: no word of this text is known.";
  const says = setLine(e, found, "deletion", "token", e.votes.tokens);
  if (!found.size) return says;
  if (kind === "kept") return `${says} Whatever other tokens are deleted, the label stays.`;
  return `${says} Deleting ${found.size === 1 ? "it" : "them"} changes the label.`;
}

/** What is proved of the size of a set of tokens or words. */
function setLine({ model, votes }, found, doing, unit, total) {
  const { rest } = model.sentences.units.tokens;
  const name = {
    none: votes.hasSink ? "set none, sink" : "set none",
    bounds: found.size ? "set bounds" : "set not found",
  }[found.status];
  const facts = { doing, rest, unit, size: whole(found.size), items: several(total, unit) };
  facts.lower = found.size ? found.lower : several(found.lower, unit);
  return model.said(name ?? (found.size ? `set ${found.status}` : "set empty"), facts);
}

function strongest(side, found, kind) {
  const most = found.length ? Math.abs(found[0].contribution) : 1;
  const rows = found
    .slice(0, STRONGEST)
    .map((one) => [
      foreign(oneLine(one.name)),
      whole(one.times),
      figure(one.attention),
      signed(one.value),
      h("span", { class: "with-bar" }, signed(one.contribution), bar(Math.abs(one.contribution) / most, kind)),
    ]);
  const says = found.length ? `${rows.length} of ${several(found.length, "token")} that speak ` : "No token speaks ";
  return h(
    "section",
    null,
    h("h3", null, "Strongest ", cloned(side)),
    h("p", { class: "soft" }, says, cloned(side), "."),
    rows.length ? tableOf(null, ["token", "times", "attention", "value", "contribution"], rows) : null,
  );
}

const cloned = (parts) => parts.map((part) => (part instanceof Node ? part.cloneNode(true) : part));

/** The line that compares with the given label. */
export function truthLine(name, right) {
  return h("p", { class: right ? "right" : "wrong" }, right ? "✓ as given: " : "✗ given label: ", foreign(name));
}
