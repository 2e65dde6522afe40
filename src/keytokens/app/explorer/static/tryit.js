// Type or paste a text: everything is computed as you type, from the model itself. Click a word to mask it.

import { remember } from "./address.js";
import { h, oncePerFrame, replace } from "./dom.js";
import { Panel } from "./panel.js";

const IN_ADDRESS = 2000; // characters of a text that the address carries

export class TryView {
  constructor(room, { model, documents }) {
    this.sample = documents?.rows.find(({ text }) => text.length > 40 && text.length < 700)?.text ?? "";
    this.input = h("textarea", {
      id: "try-text",
      rows: 4,
      dir: "auto",
      lang: "",
      spellcheck: "false",
      input: oncePerFrame(() => this.#typed()),
    });
    const label = h("label", { for: "try-text" }, "Type or paste a text; nothing leaves this page");
    this.panel = new Panel(model, { onChange: () => this.#remember(), slot: [label, this.input] });
    replace(room, h("h1", { class: "hidden-text" }, "Try it"), this.panel.element);
  }

  get e() {
    return this.panel.e;
  }

  show({ text, mask = "", rival = null }) {
    if (text === undefined && this.panel.text !== null) return;
    this.set(text ?? this.sample, mask === "" ? [] : mask.split(".").map(Number), rival);
  }

  /** Another text, nothing masked but `hidden`. */
  set(text, hidden = [], rival = null) {
    this.input.value = text;
    this.panel.show(text, { hidden, rival });
    this.#remember();
  }

  #typed() {
    this.panel.edit(this.input.value);
    this.#remember();
  }

  #remember() {
    const { text } = this.panel;
    remember("try", text.length <= IN_ADDRESS ? { text, ...this.panel.state } : {});
  }
}
