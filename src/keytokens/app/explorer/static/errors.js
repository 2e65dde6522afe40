// The texts of the page: a list that can be filtered and sorted, and the chosen one explained. Filters, order and the
// chosen text are in the address. On a narrow screen a text opens over the whole of it.

import { remember } from "./address.js";
import { button, choice, foreign, h, line, replace } from "./dom.js";
import { oneLine, percent, several, whole } from "./format.js";
import { VirtualList } from "./list.js";
import { Panel } from "./panel.js";

const UNSURE = 0.75; // probability of the label below which a text counts as unsure
const FAR = 0.02; // between two answers of the same label, from where both are told
const SNIPPET = 160;
const FULL_SCREEN = "(max-width: 599px)";
export const SEEN = "seen in training";

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
    kind: facts.kinds?.[arrays.kind?.[i]] ?? null,
  }));
  return { rows, names: facts.names, why: facts.why };
}

/** Mistakes, the surest first; texts of the training do not count unless the score is of them. */
export function surest(rows, kind) {
  const wrong = rows.filter((one) => !one.right && (kind === SEEN || one.kind !== SEEN));
  return wrong.sort(SORTS["surest first"]);
}

const SHOWS = {
  all: () => true,
  wrong: (one) => !one.right,
  right: (one) => one.right,
  unsure: (one) => one.probability < UNSURE,
};
const SHOW_NAMES = [
  ["wrong", "mistakes"],
  ["all", "all texts"],
  ["right", "right ones"],
  ["unsure", `unsure: below ${percent(UNSURE)}`],
];
const SORTS = {
  "surest first": (a, b) => b.probability - a.probability || a.row - b.row,
  "least sure first": (a, b) => a.probability - b.probability || a.row - b.row,
  "in their order": (a, b) => a.row - b.row,
  "longest first": (a, b) => b.text.length - a.text.length,
  "shortest first": (a, b) => a.text.length - b.text.length,
};

export class ErrorsView {
  constructor(room, { model, documents, overview, open }) {
    Object.assign(this, { documents });
    const title = h("h1", { class: "hidden-text" }, "Errors");
    if (!documents?.rows.length) {
      const why = overview?.left_out?.[0] ?? "There is nothing to list: this page was made without texts.";
      replace(room, title, line("note", why));
      return;
    }
    this.panel = new Panel(model, { onChange: () => this.#remember() });
    this.heading = h("p", { class: "small" });
    const close = button("✕ Close", () => this.close(), { class: "close" });
    this.detail = h("div", { class: "detail" });
    addEventListener("keydown", (event) => event.key === "Escape" && this.close());
    const elsewhere = button("Open in Try it", () => open("try", { text: this.current.text }));
    const head = h("div", { class: "detail-head" }, this.heading, h("div", { class: "buttons" }, elsewhere, close));
    replace(this.detail, head, this.panel.element);
    this.found = h("p", { class: "small soft", role: "status" });
    this.nothing = h("div", { class: "note", hidden: true });
    this.list = new VirtualList({
      label: "Texts",
      height: 72,
      name: "document",
      row: (one) => this.#row(one),
      onPick: (one) => this.open(one),
    });
    this.list.element.addEventListener("click", () => this.#cover(true));
    this.list.element.addEventListener("keydown", (event) => event.key === "Enter" && this.#cover(true));
    const why = line("small soft", documents.why);
    const side = h("div", { class: "side" }, this.found, this.nothing, this.list.element, why);
    this.split = h("div", { class: "split" }, side, this.detail);
    replace(room, title, h("div", { class: "controls" }, this.#controls()), this.split);
  }

  #controls() {
    const { rows, names } = this.documents;
    const update = () => this.update();
    const used = (of) => [...new Set(rows.map(of))].sort((a, b) => a - b).map((k) => [names[k], oneLine(names[k], 40)]);
    const kinds = [...new Set(rows.map((one) => one.kind))].filter(Boolean);
    const sorts = Object.keys(SORTS).map((name) => [name, name]);
    this.fields = {
      show: choice("Show", SHOW_NAMES, update),
      given: choice("Given label", [["", "any"], ...used((one) => one.truth)], update),
      said: choice("It said", [["", "any"], ...used((one) => one.label)], update),
      kind: choice("Kind of text", [["", "any"], ...kinds.map((kind) => [kind, kind])], update),
      sort: choice("Sort", sorts, update),
    };
    this.fields.kind.element.hidden = kinds.length < 2;
    this.search = h("input", { type: "search", input: update, placeholder: "words in the text" });
    const all = () => this.show({ show: "all", sort: this.fields.sort.select.value });
    this.reset = button("Clear the filters", all);
    const fields = Object.values(this.fields).map((field) => field.element);
    return [...fields, h("label", null, "Search", this.search), this.reset];
  }

  /** Without any filter the mistakes are shown, and all texts where there are none. */
  show(state) {
    if (!this.documents?.rows.length) return;
    if (!Object.keys(state).length && this.current) return;
    const { given = "", said = "", kind = "", sort = "surest first", find = "", from = "", to = "", text } = state;
    const wrong = this.documents.rows.some((one) => !one.right);
    const asked = given || said || kind || find || from || text;
    const values = { given, said, kind, sort, show: state.show ?? (asked || !wrong ? "all" : "wrong") };
    for (const [name, value] of Object.entries(values)) {
      const { select } = this.fields[name];
      select.value = value;
      this.missing = select.selectedIndex < 0 && name !== "sort" ? [name, value] : this.missing;
      if (select.selectedIndex < 0) select.selectedIndex = 0;
    }
    this.search.value = find;
    this.bounds = from === "" ? null : [Number(from), Number(to)];
    this.masks = { hidden: state.mask ? state.mask.split(".").map(Number) : [], rival: state.rival ?? null };
    const wanted = this.documents.rows.find((one) => one.row === Number(text) - 1);
    this.update(wanted ?? null);
    this.missing = null;
    if (wanted) this.#cover(true);
  }

  get filters() {
    const state = Object.fromEntries(Object.entries(this.fields).map(([name, { select }]) => [name, select.value]));
    const [from, to] = this.bounds ?? ["", ""];
    return { ...state, find: this.search.value, from, to };
  }

  update(wanted = null) {
    const { show, given, said, kind, sort, find } = this.filters;
    const { names, rows } = this.documents;
    const sought = find.toLowerCase();
    const [low, high] = this.bounds ?? [-1, 2];
    const found = rows.filter(
      (one) =>
        !this.missing &&
        SHOWS[show](one) &&
        (given === "" || names[one.truth] === given) &&
        (said === "" || names[one.label] === said) &&
        (kind === "" || one.kind === kind) &&
        one.probability >= low &&
        (one.probability < high || high >= 1) &&
        (sought === "" || one.text.toLowerCase().includes(sought)),
    );
    found.sort(SORTS[sort]);
    const range = this.bounds ? ` that it called ${percent(low)} to ${percent(high)} sure` : "";
    this.found.textContent = `${several(found.length, "text")}${range}, of ${whole(rows.length)} in this page`;
    this.reset.hidden = show === "all" && !given && !said && !kind && !find && !this.bounds;
    this.nothing.hidden = found.length > 0;
    this.split.classList.toggle("empty", !found.length);
    if (!found.length) {
      const name = this.missing ? `${this.missing[0]} ${oneLine(this.missing[1], 40)}` : "all that is chosen above";
      replace(this.nothing, "No text of this page fits ", foreign(name), `. ${this.documents.why}`);
      this.list.show([]);
      return;
    }
    const at = Math.max(0, found.indexOf(wanted ?? this.current));
    this.list.show(found, at);
    if (found[at] !== this.current || wanted) this.open(found[at]);
    else this.#remember();
  }

  #row(one) {
    const { names } = this.documents;
    return [
      h("div", { class: "row-head" }, wrongLine(one, names)),
      h("div", { class: "snippet", dir: "auto", lang: "" }, oneLine(one.text, SNIPPET)),
    ];
  }

  /** Explains one text beside the list. */
  open(one) {
    this.current = one;
    const { names } = this.documents;
    const { hidden, rival } = this.masks ?? {};
    this.panel.show(one.text, { hidden, rival, remark: (base) => remark(one, base, names) });
    this.masks = null;
    replace(this.heading, h("b", null, `Text ${whole(one.row + 1)}`), one.kind ? `, ${one.kind}` : "");
    this.detail.scrollTop = 0;
    this.#remember();
  }

  /** On a narrow screen the text is in sight, and in the address, only when it was opened. */
  #cover(open) {
    this.split.classList.toggle("open", open);
    if (open && matchMedia(FULL_SCREEN).matches) this.detail.querySelector(".close").focus();
    this.#remember();
  }

  get #inSight() {
    return this.current && (this.split.classList.contains("open") || !matchMedia(FULL_SCREEN).matches);
  }

  close() {
    if (!this.split.classList.contains("open")) return;
    this.#cover(false);
    this.list.element.focus();
  }

  /** Puts a text on the screen, whatever the filters say. */
  reveal(one) {
    this.show({ show: "all", text: one.row + 1 });
  }

  #remember() {
    const { show, sort, ...rest } = this.filters;
    const usual = sort === "surest first" ? "" : sort;
    const text = this.#inSight ? { text: this.current.row + 1, ...this.panel.state } : {};
    remember("errors", { show, ...rest, sort: usual, ...text });
  }
}

/** Was the score of this text asked of another model, which had not seen it? */
export function apart({ kind }) {
  return kind === "held-out" || kind === "out-of-fold";
}

/** What stands under the label: right or wrong, of what was said for the score. */
function remark(one, base, names) {
  const name = (k) => foreign(oneLine(names[k], 40));
  const { label, truth, probability, right } = one;
  const given = right ? ["✓ right: given ", name(truth)] : ["✗ wrong: given ", name(truth)];
  const verdict = h("span", { class: right ? "right" : "wrong" }, given);
  const asked = apart(one) ? "a model that had not seen this text" : "the whole model, of which this is a smaller one,";
  const sure = `Asked for the score, ${asked} was ${percent(probability)} sure.`;
  const far = Math.abs(base.probability - probability) > FAR;
  if (base.label === label) return [h("p", null, verdict), far ? line("small soft", sure) : null];
  return line("small", `Asked for the score, ${asked} said `, name(label), ` (${percent(probability)}). `, verdict);
}

/** Right or wrong by sign and word: what was said, how surely, and what was given. */
export function wrongLine({ right, label, truth, probability }, names) {
  const name = (k) => foreign(oneLine(names[k], 30));
  const said = [name(label), " ", percent(probability)];
  if (right) return [h("span", { class: "right" }, "✓ right: "), said];
  return [h("span", { class: "wrong" }, "✗ said ", said), ", ", h("span", { class: "soft" }, "given ", name(truth))];
}
