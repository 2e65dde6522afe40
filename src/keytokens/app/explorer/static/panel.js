// The explanation of one text, the same everywhere: label and probabilities, the proof, the text with its marks, one
// list of bars for the label against a rival, and masks to try. Numbers are folded away.

import { classBars, leadBars } from "./bars.js";
import { announce, button, download, folded, foreign, h, line, replace } from "./dom.js";
import { detailsOf } from "./details.js";
import { Explanation } from "./explain.js";
import { oneLine, percent, several, shortly, whole } from "./format.js";
import { marksOf, usesOver } from "./marks.js";
import { pageOf, pictureOf, savePng, saveSvg } from "./picture.js";
import { sentencesOf, unknownWords } from "./proof/sentence.js";
import { NO_WORDS } from "./proof/words.js";
import { TextView } from "./text.js";

const QUICK = 80; // words of a text whose sets of words are computed at once
const MOST_WORDS = 1500; // of a text whose sets of words are computed here
const PAUSE = 250; // milliseconds without a change before those of longer texts are

export class Panel {
  /** onChange(state) when masks or the rival change; `slot` is shown above the text. */
  constructor(model, { onChange = () => {}, slot = null } = {}) {
    Object.assign(this, { model, onChange, text: null, hidden: new Set(), past: [], chosen: null });
    this.answer = h("div", { class: "answer" });
    this.legend = h("p", { class: "legend" });
    this.keptKey = h("span", null, h("b", { class: "kept" }, "line"), " keep these and it stays");
    this.goneKey = h("span", null, h("b", { class: "gone" }, "dots"), " mask these and it changes");
    this.inspector = h("p", { class: "inspector soft" });
    this.view = new TextView({
      label: "The text; arrow keys move from word to word, Enter masks one",
      onInspect: (i) => this.inspect(i),
      onWord: (i) => this.toggle(i),
    });
    this.bars = h("ul", { class: "leads", "aria-label": "What speaks for and against" });
    this.scale = h("p", { class: "soft" });
    this.masks = h("p", { class: "buttons", role: "group", "aria-label": "Masks" });
    this.foot = h("p", { class: "foot" });
    this.proof = h("div", { class: "proof" });
    this.more = folded("In numbers", () => detailsOf(this.e, this.pair));
    this.element = h(
      "div",
      { class: "panel" },
      h(
        "div",
        { class: "parts" },
        slot ? h("div", { class: "slot" }, slot) : null,
        h("div", { class: "answers" }, this.answer, this.proof, this.masks, this.foot, this.#exports()),
        h("div", { class: "reason" }, this.view.element, this.legend, this.inspector, this.bars, this.scale, this.more),
      ),
    );
  }

  /** Another text. `rival` is the name of a class; what `remark(base)` gives stands under the label. */
  show(text, { hidden = [], rival = null, remark = () => null } = {}) {
    Object.assign(this, { text, hidden: new Set(hidden), past: [] });
    const named = this.model.classes.findIndex((one) => one.name === rival);
    this.chosen = named >= 0 ? named : null;
    this.base = new Explanation(this.model, text);
    this.remark = remark(this.base);
    this.render();
  }

  /** The same text, edited: masks stay on their words. */
  edit(text) {
    const forms = (words) => words.map((word) => word.form);
    const base = new Explanation(this.model, text);
    const hidden = moved(this.hidden, forms(this.base.words), forms(base.words));
    Object.assign(this, { text, base, hidden, past: [] });
    this.render();
  }

  get state() {
    const name = this.chosen === null ? null : this.model.classes[this.chosen].name;
    return { mask: [...this.hidden].sort((a, b) => a - b).join("."), rival: name };
  }

  /** The two classes that are compared; masks do not change them. */
  get pair() {
    const { base, chosen } = this;
    const { label } = base;
    if (chosen !== null && chosen !== label) return { label, rival: chosen };
    // the class that the sentence leads to: fewest words may lead to another one than fewest tokens
    const inWords = base.words.length <= QUICK && base.flipWords.status !== "bounds";
    return { label, rival: (inWords ? base.flipWords.labelAfter : null) ?? base.rival };
  }

  render() {
    this.e = this.hidden.size ? new Explanation(this.model, this.text, this.hidden) : this.base;
    const { e } = this;
    replace(this.answer, verdict(e, this.base, this.pair, this.remark));
    replace(this.legend, this.#legend());
    this.bars.classList.toggle("changed", this.hidden.size > 0);
    replace(this.bars, leadBars(e, this.base, this.pair));
    replace(this.scale, this.#scale());
    replace(this.foot, known(e));
    this.inspect(null);
    this.more.renew();
    clearTimeout(this.later); // sets of words may take longer than a frame: those of long texts wait for a pause
    const quick = e.words.length <= QUICK;
    this.#sets(quick);
    if (!quick) this.later = setTimeout(() => this.#sets(e.words.length <= MOST_WORDS), PAUSE);
  }

  /** The marks of the text and the buttons below it, with the sets of words or before they are known. */
  #sets(computed) {
    const { e } = this;
    const { because, ...others } = sentencesOf(e, computed);
    const rest = Object.values(others).filter(Boolean).join(" ");
    replace(this.proof, h("p", null, h("b", null, because), rest ? ` ${rest}` : ""));
    const kept = computed ? e.sufficientWords : NO_WORDS;
    const gone = computed ? e.flipWords.positions : [];
    const marks = marksOf(e, { ...this.pair, kept: kept.positions, gone });
    marks.most = marksOf(this.base, this.pair).most || marks.most;
    this.marks = marks;
    this.keptKey.hidden = !kept.positions.length;
    this.goneKey.hidden = !gone.length;
    this.view.show(e, this.hidden, marks);
    const staying = new Set([...kept.positions, ...this.hidden]);
    const free = e.words.map((_, i) => i).filter((i) => !staying.has(i));
    const maskButton = (text, able, click) => button(text, click, { disabled: !able });
    const these = gone.length > 1 ? `Mask these ${whole(gone.length)}` : "Mask this one";
    replace(
      this.masks,
      maskButton("Mask all others", kept.status !== "none" && free.length, () => this.mask(free)),
      maskButton(these, gone.length, () => this.mask(gone)),
      maskButton("Undo", this.past.length || this.hidden.size, () => this.undo()),
    );
  }

  toggle(i) {
    const hidden = new Set(this.hidden);
    if (!hidden.delete(i)) hidden.add(i);
    this.#change(hidden);
    this.view.focus(i);
    this.inspect(i);
  }

  /** Masks these words beside those that are masked already. */
  mask(words) {
    this.#change(new Set([...this.hidden, ...words]));
  }

  undo() {
    const before = this.past.pop() ?? new Set();
    this.#change(before, false);
  }

  #change(hidden, keep = true) {
    if (keep) this.past.push(this.hidden);
    this.hidden = hidden;
    this.render();
    this.onChange(this.state);
    const { classes } = this.model;
    announce(`${oneLine(classes[this.e.label].name, 30)}, ${percent(this.e.probability)}`);
  }

  /** What the tokens over a word say. */
  inspect(i) {
    const { e } = this;
    if (i === null) {
      replace(this.inspector, "Point at a word for what it says; click it to mask it.");
      return;
    }
    const uses = usesOver(e, i);
    const { label, rival } = this.pair;
    const leads = e.against(rival, label);
    const word = foreign(oneLine(e.text.slice(e.words[i].start, e.words[i].end)));
    const said = uses.map((use, o) => [
      o ? " · " : "",
      foreign(oneLine(use.text)),
      ` ${shortly(leads[use.token] / e.read.occurrences[use.token])}`,
    ]);
    if (this.hidden.has(i)) replace(this.inspector, word, " is masked.");
    else replace(this.inspector, uses.length ? said : [word, " is in no token that the model knows."]);
  }

  #legend() {
    const { e, model } = this;
    if (!this.base.names.length) return ["No word of this text is known to the model."];
    const { label, rival } = this.pair;
    const name = (k) => foreign(oneLine(model.classes[k].name, 30));
    return [
      h("span", null, h("b", { class: "p4" }, "blue"), " speaks for ", name(label)),
      h("span", null, h("b", { class: "n4" }, "orange"), " for ", model.two ? name(rival) : this.#choice(label, rival)),
      this.keptKey,
      this.goneKey,
      unknownWords(e) ? h("span", null, h("b", { class: "unknown" }, "grey"), " not known") : null,
    ];
  }

  #choice(label, rival) {
    const { classes } = this.model;
    const change = (event) => {
      this.chosen = Number(event.target.value);
      this.render();
      this.legend.querySelector("select").focus();
      this.onChange(this.state);
    };
    const order = classes.map((_, k) => k).filter((k) => k !== label);
    order.sort((i, j) => this.base.probabilities[j] - this.base.probabilities[i]);
    const options = order.map((k) => h("option", { value: k, selected: k === rival }, oneLine(classes[k].name, 40)));
    return h("select", { "aria-label": "Class to compare with", change }, options);
  }

  #scale() {
    if (!this.base.names.length) return [];
    const { label, rival } = this.pair;
    const name = (k) => foreign(oneLine(this.model.classes[k].name, 30));
    return [
      "On one scale: what speaks for ",
      name(label),
      " minus what speaks for ",
      name(rival),
      ". Together: its lead.",
    ];
  }

  /** This panel as a page of its own, without a script. */
  standalone() {
    const content = this.element.cloneNode(true);
    content
      .querySelectorAll(".slot, .exports, .inspector, .buttons, details:not([open])")
      .forEach((part) => part.remove());
    content.querySelectorAll("select").forEach((select) => {
      select.replaceWith(oneLine(this.model.classes[this.pair.rival].name, 30));
    });
    content.querySelectorAll(".pressable").forEach((part) => part.classList.remove("pressable"));
    content.querySelectorAll(".w[tabindex]").forEach((word) => {
      for (const name of ["role", "tabindex", "aria-pressed"]) word.removeAttribute(name);
    });
    return pageOf(`${this.model.classes[this.e.label].name} (${percent(this.e.probability)})`, content);
  }

  #exports() {
    const save = (name, click) => button(name, click, { class: "link" });
    const picture = () => pictureOf(this.e, this.hidden, this.marks, this.pair);
    return h(
      "p",
      { class: "exports", role: "group", "aria-label": "Save this explanation" },
      "Save as ",
      save("HTML", () => download("explanation.html", "text/html", this.standalone())),
      save("SVG", () => saveSvg(picture())),
      save("PNG", () => savePng(picture())),
    );
  }
}

function known(e) {
  const masked = e.hidden ? `, ${whole(e.hidden.size)} masked` : "";
  return `${whole(e.words.length - unknownWords(e) - (e.hidden?.size ?? 0))} of ${several(e.words.length, "word")} known${masked}.`;
}

function verdict(e, base, pair, remark) {
  const name = (k) => foreign(oneLine(e.model.classes[k].name));
  const same = e.label === base.label;
  const was = e === base ? null : [" was ", same ? null : [name(base.label), " "], percent(base.probability)];
  return [
    h("h2", { class: "label" }, name(e.label), " ", h("span", { class: "num" }, percent(e.probability))),
    was ? line("soft", "With the masks; it", was, " without.") : null,
    remark,
    h("ul", { class: "classes", "aria-label": "Probability of each class" }, classBars(e, base, pair)),
  ];
}

/** Where masks lie after an edit: words before and behind the change keep theirs. */
export function moved(hidden, before, after) {
  if (!hidden.size) return hidden;
  const most = Math.min(before.length, after.length);
  let head = 0;
  while (head < most && before[head] === after[head]) head++;
  let tail = 0;
  while (tail < most - head && before[before.length - 1 - tail] === after[after.length - 1 - tail]) tail++;
  const stay = new Set();
  for (const i of hidden) {
    if (i < head) stay.add(i);
    else if (i >= before.length - tail) stay.add(i + after.length - before.length);
  }
  return stay;
}
