// Type or paste a text: everything is computed as you type, from the model itself. Click a word to mask it.

import { foreign, h, oncePerFrame, replace } from "./dom.js";
import { Explanation } from "./explain.js";
import { chance, oneLine, several } from "./format.js";
import { Panel } from "./panel.js";

export class TryView {
  constructor(room, model, text) {
    this.model = model;
    this.hidden = new Set();
    this.panel = new Panel({ onWord: (i) => this.toggle(i), onMask: (words) => this.mask(words) });
    this.update = oncePerFrame(() => this.render());
    this.input = h("textarea", {
      id: "try-text",
      rows: 6,
      dir: "auto",
      lang: "",
      spellcheck: "false",
      input: () => this.#typed(),
    });
    this.status = h("p", { class: "soft", role: "status" });
    this.unmask = h("button", { type: "button", click: () => this.#clear() }, "Unmask all");
    replace(
      room,
      h("h2", null, "Try it"),
      h("label", { for: "try-text" }, "Type or paste a text; nothing leaves this page"),
      this.input,
      h("div", { class: "controls" }, this.unmask, this.status),
      this.panel.element,
    );
    this.set(text);
  }

  /** Another text, nothing masked. */
  set(text) {
    this.input.value = text;
    this.hidden = new Set();
    this.forms = [];
    this.render();
  }

  toggle(i) {
    if (!this.hidden.delete(i)) this.hidden.add(i);
    this.render();
    this.panel.view.focus(i);
    this.panel.inspect(i);
  }

  /** Masks these words beside those that are masked already. */
  mask(words) {
    this.hidden = new Set([...this.hidden, ...words]);
    this.render();
  }

  #clear() {
    this.hidden = new Set();
    this.render();
  }

  /** Masks stay on their words when the text changes before or behind them. */
  #typed() {
    if (this.hidden.size) {
      const forms = this.model.read(this.input.value).words.map((word) => word.form);
      this.hidden = moved(this.hidden, this.forms, forms);
    }
    this.update();
  }

  render() {
    const text = this.input.value;
    const e = new Explanation(this.model, text, this.hidden.size ? this.hidden : null);
    this.forms = e.words.map((word) => word.form);
    this.panel.show(e, { hidden: this.hidden });
    this.unmask.disabled = this.hidden.size === 0;
    const masked = this.hidden.size ? `, ${several(this.hidden.size, "word")} masked` : "";
    replace(
      this.status,
      `${several(e.words.length, "word")}, ${several(e.names.length, "known token")}${masked}: `,
      foreign(oneLine(this.model.classes[e.label].name, 30)),
      ` ${chance(e.probability)}`,
    );
    this.e = e;
  }
}

/** Where masks lie after an edit: words before and behind the change keep theirs. */
export function moved(hidden, before, after) {
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
