// The given texts: a list that can be sorted and filtered, and each one explained.

import { foreign, h, replace } from "./dom.js";
import { Explanation } from "./explain.js";
import { chance, oneLine, several, whole } from "./format.js";
import { VirtualList } from "./list.js";
import { Panel, truthLine } from "./panel.js";

const UNSURE = 0.75; // probability of the label below which a text counts as unsure
const SNIPPET = 160;

/** The container as rows. */
export function documentsOf(container) {
  if (!container) return null;
  const { facts, arrays } = container;
  const rows = facts.texts.map((text, i) => ({
    text,
    row: arrays.row[i],
    truth: arrays.truth[i],
    label: arrays.label[i],
    probability: arrays.probability[i],
    right: arrays.truth[i] === arrays.label[i],
  }));
  return { rows, names: facts.names, why: facts.why };
}

const SORTS = {
  "in their order": (a, b) => a.row - b.row,
  "least sure first": (a, b) => a.probability - b.probability,
  "surest first": (a, b) => b.probability - a.probability,
  "longest first": (a, b) => b.text.length - a.text.length,
  "shortest first": (a, b) => a.text.length - b.text.length,
};

export class DocumentsView {
  /** onTry(text) opens a text where it can be edited. */
  constructor(room, model, documents, onTry) {
    Object.assign(this, { model, documents, onTry });
    this.panel = new Panel();
    this.detail = h(
      "div",
      { class: "detail", tabindex: "-1" },
      h("p", { class: "soft" }, "Choose a text from the list."),
    );
    this.found = h("p", { class: "soft", role: "status" });
    this.list = new VirtualList({
      label: "Texts",
      height: 74,
      name: "document",
      row: (one) => this.#row(one),
      onPick: (one) => this.open(one),
    });
    this.#controls();
    replace(
      room,
      h("h2", null, "Documents"),
      h("p", { class: "soft" }, documents.why),
      h("div", { class: "controls" }, this.controls),
      h("div", { class: "split" }, h("div", { class: "side" }, this.found, this.list.element), this.detail),
    );
    this.update();
  }

  #controls() {
    const update = () => this.update();
    const choice = (label, name, options) => {
      this[name] = h(
        "select",
        { change: update },
        options.map(([value, text]) => h("option", { value }, text)),
      );
      return h("label", null, label, this[name]);
    };
    const used = new Set(this.documents.rows.flatMap(({ truth, label }) => [truth, label]));
    const names = this.documents.names.map((name, k) => [k, oneLine(name, 40)]).filter(([k]) => used.has(k));
    this.search = h("input", { type: "search", input: update, placeholder: "words in the text" });
    this.controls = [
      choice("Show", "which", [
        ["all", "all"],
        ["wrong", "wrong"],
        ["right", "right"],
        ["unsure", `unsure (probability below ${UNSURE})`],
      ]),
      choice("Given label", "truth", [["", "any"], ...names]),
      choice("Model says", "said", [["", "any"], ...names]),
      choice(
        "Sort",
        "sort",
        Object.keys(SORTS).map((name) => [name, name]),
      ),
      h("label", null, "Search", this.search),
    ];
  }

  update() {
    const which = this.which.value;
    const sought = this.search.value.toLowerCase();
    const rows = this.documents.rows.filter(
      (one) =>
        (which === "all" || (which === "unsure" ? one.probability < UNSURE : one.right === (which === "right"))) &&
        (this.truth.value === "" || one.truth === Number(this.truth.value)) &&
        (this.said.value === "" || one.label === Number(this.said.value)) &&
        (sought === "" || one.text.toLowerCase().includes(sought)),
    );
    rows.sort(SORTS[this.sort.value]);
    this.found.textContent = `${several(rows.length, "text")} of ${whole(this.documents.rows.length)}`;
    this.list.show(rows, rows.indexOf(this.current));
  }

  #row(one) {
    const { names } = this.documents;
    return [
      h(
        "div",
        { class: "row-head" },
        h(
          "span",
          { class: one.right ? "right" : "wrong" },
          one.right ? "✓" : "✗",
          h("span", { class: "hidden-text" }, one.right ? "right:" : "wrong:"),
        ),
        foreign(oneLine(names[one.label], 30)),
        h("span", { class: "num" }, chance(one.probability)),
        one.right ? null : h("span", { class: "soft" }, "given ", foreign(oneLine(names[one.truth], 30))),
      ),
      h("div", { class: "snippet", dir: "auto", lang: "" }, oneLine(one.text, SNIPPET)),
    ];
  }

  /** Explains one text beside the list. */
  open(one) {
    this.current = one;
    const e = new Explanation(this.model, one.text);
    this.panel.show(e, { truth: truthLine(this.documents.names[one.truth], one.right) });
    replace(
      this.detail,
      h(
        "div",
        { class: "detail-head" },
        h("h3", null, `Text ${whole(one.row + 1)}`),
        h("button", { type: "button", click: () => this.onTry(one.text) }, "Open in Try it"),
      ),
      this.panel.element,
    );
    this.detail.scrollTop = 0;
  }

  /** Puts a text on the screen, whatever the filters say. */
  reveal(one) {
    this.which.value = "all";
    this.truth.value = this.said.value = this.search.value = "";
    this.open(one);
    this.update();
  }
}
