// All words and n-grams that the model knows: the map, the list, and what is known of one of them.

import { addressOf, remember } from "./address.js";
import { announce, bar, button, choice, download, foreign, h, line, replace, scrolling, tableOf } from "./dom.js";
import { broken, clean, figure, oneLine, several, signed, whole } from "./format.js";
import { VirtualList } from "./list.js";
import { HUES, SHAPE_SIGNS, TokenMap } from "./map.js";

const EXAMPLES = 4;
const OWN_SIGNS = 6; // classes that have a sign and a colour of their own
const AROUND = 60; // characters of context on each side

export class VocabularyView {
  constructor(room, { model, documents, overview }) {
    Object.assign(this, { model, documents, overview });
    this.rank();
    this.tip = h("div", { class: "tip", hidden: true, "aria-hidden": "true" });
    this.map = new TokenMap({
      points: this.points(""),
      signs: this.signs,
      name: (s) => model.tokens[s],
      nameX: this.nameX(""),
      onHover: (s, place) => this.#hover(s, place),
      onPick: (s) => this.pick(s),
    });
    this.list = new VirtualList({
      label: "Tokens, most decisive first",
      height: 40,
      name: "token",
      row: (s) => this.#row(s),
      onPick: (s) => this.pick(s, true),
    });
    this.detail = h(
      "div",
      { class: "card", "aria-live": "polite" },
      line("soft", "Choose a token on the map or in the list."),
    );
    this.found = h("p", { class: "soft", role: "status" });
    replace(
      room,
      h("h1", { class: "hidden-text" }, "Words"),
      this.#intro(),
      h("div", { class: "controls" }, this.#controls()),
      this.#layout(),
    );
  }

  show({ speaks, find, token }) {
    if (this.current && speaks === undefined && find === undefined && token === undefined) return;
    const k = this.model.classes.findIndex((one) => one.name === speaks);
    this.only.value = k < 0 ? "" : k;
    this.search.value = find ?? "";
    this.update();
    const s = token === undefined ? this.current[0] : this.model.column.get(token);
    if (s !== undefined) this.pick(s);
  }

  #remember() {
    const speaks = this.only.value === "" ? "" : this.model.classes[this.only.value].name;
    const token = this.picked === undefined ? "" : this.model.tokens[this.picked];
    remember("words", { speaks, find: this.search.value, token });
  }

  /** Up to six classes have a sign and a colour of their own; of more, only the one that is chosen has a colour. */
  get signs() {
    const { classes, two } = this.model;
    if (two) return [0, 1];
    return classes.length <= OWN_SIGNS ? classes.map((_, k) => k + 2) : null;
  }

  /** For each token the class it speaks for, its value there, and how much it says over the training documents. */
  rank() {
    const { model } = this;
    this.kind = new Uint16Array(model.size);
    this.value = new Float64Array(model.size);
    this.worth = new Float64Array(model.size);
    for (let s = 0; s < model.size; s++) {
      if (model.two) {
        this.value[s] = model.value(s, 1);
        this.kind[s] = this.value[s] > 0 ? 1 : 0;
      } else {
        let best = 0;
        for (let k = 1; k < model.classes.length; k++) if (model.value(s, k) > model.value(s, best)) best = k;
        this.kind[s] = best;
        this.value[s] = model.value(s, best);
      }
      this.worth[s] = model.meanAttention[s] * Math.abs(this.value[s]);
    }
    this.order = Array.from({ length: model.size }, (_, s) => s).sort((i, j) => this.worth[j] - this.worth[i] || i - j);
  }

  /** Places on the map: value for one class, or ("") as the model's own: the logit's, or the strongest class's. */
  points(k, root = false) {
    const value = k === "" ? (s) => this.value[s] : (s) => this.model.value(s, Number(k));
    const x = Float64Array.from({ length: this.model.size }, (_, s) => (root ? rootOf(value(s)) : value(s)));
    return { x, y: this.model.attention, kind: this.kind, order: this.order, root };
  }

  nameX(k, root = false) {
    const { classes, two } = this.model;
    const scale = root ? " (root scale)" : "";
    if (k !== "") return `value for ${oneLine(classes[k].name, 30)}${scale}`;
    if (!two) return `value for the class it speaks for most${scale}`;
    return `value: right of 0 for ${oneLine(classes[1].name, 24)}, left for ${oneLine(classes[0].name, 24)}${scale}`;
  }

  #intro() {
    const all = this.overview?.tokens_of ?? this.model.size;
    const cut = all > this.model.size ? ` in this page, of ${whole(all)} in the model` : "";
    return line(
      "sub",
      `${several(this.model.size, "token")}${cut}. A token is a word or a few in a row; it has two numbers: its attention says how much it weighs, its value for which class it speaks. Drag to move, wheel or + and − to zoom.`,
    );
  }

  #controls() {
    const update = () => this.update();
    const names = this.model.classes.map((one, k) => [k, oneLine(one.name, 40)]);
    const place = () => {
      const root = scale.select.value === "root";
      this.map.set(this.points(across.select.value, root), this.nameX(across.select.value, root));
    };
    this.search = h("input", { type: "search", input: update, placeholder: "part of a word" });
    const only = choice("Speaks for", [["", "any class"], ...names], update);
    const across = choice("Value for", [["", "strongest class"], ...names], place);
    const scale = choice(
      "Value axis",
      [
        ["linear", "linear"],
        ["root", "root: spreads small values"],
      ],
      place,
    );
    this.only = only.select;
    const named = (text, label, click) => button(text, click, { "aria-label": label });
    return [
      h("label", null, "Search", this.search),
      only.element,
      this.model.two ? null : across.element,
      scale.element,
      h(
        "span",
        { class: "buttons", role: "group", "aria-label": "Zoom" },
        named("+", "Zoom in", () => this.map.zoom(1.5)),
        named("−", "Zoom out", () => this.map.zoom(1 / 1.5)),
        named("All", "Show the whole map", () => this.map.reset()),
      ),
      named("Save as CSV", "Save the tokens of the list as CSV", () =>
        download("key-tokens.csv", "text/csv", this.csv()),
      ),
    ];
  }

  #layout() {
    const key = this.signs
      ? this.model.classes.map((one, k) => h("span", null, this.#sign(k), " ", foreign(oneLine(one.name, 40))))
      : "Choose a class at “Speaks for” to see its words in colour.";
    return h(
      "div",
      { class: "split wide-first" },
      h("div", null, h("div", { class: "map" }, this.map.canvas, this.tip), line("legend", key)),
      h(
        "div",
        { class: "side" },
        this.found,
        h(
          "div",
          { class: "token-row token-head", "aria-hidden": "true" },
          h("span"),
          h("span", null, "token"),
          h("span", null, "for"),
          h("span", { class: "num" }, "value"),
          h("span", { class: "num" }, "texts"),
        ),
        this.list.element,
        this.detail,
      ),
    );
  }

  update() {
    const sought = this.search.value.toLowerCase().normalize("NFC");
    const only = this.only.value;
    const all = sought === "" && only === "";
    const found = all
      ? this.order
      : this.order.filter(
          (s) => this.model.tokens[s].includes(sought) && (only === "" || this.kind[s] === Number(only)),
        );
    this.map.shown = null;
    if (!all) {
      this.map.shown = new Uint8Array(this.model.size);
      for (const s of found) this.map.shown[s] = 1;
    }
    this.current = found;
    this.found.textContent = several(found.length, "token");
    this.list.show(found, found.indexOf(this.map.picked));
    this.map.focus = this.signs || only === "" ? -1 : Number(only);
    this.map.redraw();
    this.#remember();
  }

  #sign(k) {
    const sign = h("span", { "aria-hidden": "true" }, this.signs ? SHAPE_SIGNS[this.signs[k]] : "");
    if (this.signs) sign.style.color = `var(--${HUES[this.signs[k]]})`;
    return sign;
  }

  #row(s) {
    return h(
      "div",
      { class: "token-row" },
      this.#sign(this.kind[s]),
      foreign(oneLine(this.model.tokens[s])),
      foreign(oneLine(this.model.classes[this.kind[s]].name, 16), { class: "soft" }),
      h("span", { class: "num" }, signed(this.value[s])),
      h("span", { class: "num soft" }, whole(this.total(s))),
    );
  }

  /** Training documents that hold the token. */
  total(s) {
    let sum = 0;
    for (let k = 0; k < this.model.classes.length; k++) sum += this.model.classCounts[k * this.model.size + s];
    return sum;
  }

  #hover(s, place) {
    this.tip.hidden = s < 0;
    if (s < 0) return;
    replace(
      this.tip,
      h("b", null, foreign(oneLine(this.model.tokens[s]))),
      ...this.#facts(s).map((line) => h("div", null, line)),
      ...this.examples(s, 1).map((one) => h("div", { class: "soft" }, this.#context(one))),
    );
    const { clientWidth, clientHeight } = this.map.canvas;
    this.tip.style.insetInlineStart = `${Math.max(4, Math.min(place.x + 12, clientWidth - 280))}px`;
    this.tip.style.insetBlockStart = `${Math.min(place.y + 12, clientHeight - 120)}px`;
  }

  #facts(s) {
    const { model } = this;
    const counts = model.classes
      .slice(0, 6)
      .map((one, k) => `${oneLine(one.name, 20)} ${whole(model.classCounts[k * model.size + s])}`);
    return [
      `value ${signed(this.value[s])}, attention ${signed(model.attention[s])}`,
      `in training texts: ${counts.join(", ")}`,
    ];
  }

  /** Shows one token beside the map. */
  pick(s, fromList = false) {
    const { model } = this;
    this.map.pick(s);
    if (!fromList) {
      this.list.picked = this.current.indexOf(s);
      if (this.list.picked >= 0) this.list.show(this.current, this.list.picked);
    }
    this.picked = s;
    replace(this.detail, this.#describe(s));
    this.#remember();
    announce(`${oneLine(model.tokens[s])}: value ${signed(this.value[s])}, attention ${signed(model.attention[s])}`);
  }

  #describe(s) {
    const { model } = this;
    const most = Math.max(1, ...model.classes.map((_, k) => model.classCounts[k * model.size + s]));
    const value = (k) => (model.two && k === 0 ? signed(-model.value(s, 1)) : signed(model.value(s, k)));
    const rows = model.classes.map((one, k) => {
      const count = model.classCounts[k * model.size + s];
      return [
        foreign(oneLine(one.name, 30)),
        value(k),
        h("span", { class: "with-bar" }, whole(count), bar(count / most, "k")),
      ];
    });
    const found = this.examples(s, EXAMPLES);
    return [
      h("h2", null, this.#sign(this.kind[s]), " ", foreign(oneLine(model.tokens[s]))),
      h(
        "p",
        null,
        "attention ",
        h("b", { class: "num" }, signed(model.attention[s])),
        " · mean over the training texts ",
        h("b", { class: "num" }, figure(model.meanAttention[s])),
      ),
      scrolling("Classes of this token", tableOf(["class", "value", "training texts"], rows.slice(0, 30), "plain")),
      h("h3", null, "In the texts of this page"),
      found.length
        ? h(
            "ul",
            { class: "examples" },
            found.map((one) => this.#example(one)),
          )
        : line("soft", "None of them has it."),
    ];
  }

  #example(one) {
    const { names } = this.documents;
    return h(
      "li",
      null,
      h(
        "a",
        { href: addressOf("errors", { show: "all", text: one.document.row + 1 }) },
        `Text ${whole(one.document.row + 1)}, `,
        foreign(oneLine(names[one.document.label], 24)),
      ),
      h("div", { dir: "auto", lang: "" }, this.#context(one)),
    );
  }

  #context({ document: { text }, start, end }) {
    const from = Math.max(0, start - AROUND);
    return [
      from > 0 ? "…" : "",
      flat(text.slice(from, start)),
      h("mark", null, flat(text.slice(start, end))),
      flat(text.slice(end, end + AROUND)),
      end + AROUND < text.length ? "…" : "",
    ];
  }

  /** Texts of the page that hold a token: {document, start, end}. */
  examples(s, most) {
    if (!this.documents) return [];
    const token = this.model.tokens[s];
    const first = token.split(" ")[0];
    const found = [];
    for (const document of this.documents.rows) {
      document.lower ??= document.text.toLowerCase().normalize("NFC");
      if (!document.lower.includes(first)) continue;
      const read = this.model.read(document.text);
      const t = read.columns.indexOf(s);
      if (t < 0) continue;
      const o = read.token.indexOf(t);
      found.push({
        document,
        start: read.words[read.first[o]].start,
        end: read.words[read.first[o] + read.size[o] - 1].end,
      });
      if (found.length >= most) break;
    }
    return found;
  }

  /** The tokens of the list, most decisive first, as CSV. */
  csv() {
    const { model } = this;
    const head = [
      "token",
      "speaks_for",
      "contribution",
      "attention",
      "value",
      "attention_logit",
      ...model.classes.map((one) => `texts_${one.name}`),
    ];
    const rows = this.current.map((s) => [
      model.tokens[s],
      model.classes[this.kind[s]].name,
      this.worth[s],
      model.meanAttention[s],
      model.two && this.kind[s] === 0 ? -this.value[s] : this.value[s],
      model.attention[s],
      ...model.classes.map((_, k) => model.classCounts[k * model.size + s]),
    ]);
    return [head, ...rows].map((row) => row.map(csvField).join(",")).join("\r\n") + "\r\n";
  }
}

const rootOf = (value) => Math.sign(value) * Math.sqrt(Math.abs(value));
const flat = (text) => broken(clean(text)).replace(/\s+/g, " ");

/** Quoted where it must be; a field that a spreadsheet would take for a formula is kept from being one. */
function csvField(content) {
  if (typeof content === "number") return String(content);
  const safe = /^[=+\-@\t\r]/.test(content) ? `'${content}` : content;
  return /[",\r\n]/.test(safe) ? `"${safe.replace(/"/g, '""')}"` : safe;
}
