// A list of any length: only the rows in sight exist.

import { h, oncePerFrame, replace } from "./dom.js";

const SPARE = 6; // rows beyond the edges

export class VirtualList {
  /** row(item, i) fills an option; onPick(item, i) when one is chosen. */
  constructor({ label, height, row, onPick, name }) {
    Object.assign(this, { height, row, onPick, name });
    this.items = [];
    this.picked = -1;
    this.room = h("div", { class: "list-room" });
    this.element = h(
      "div",
      {
        class: "list",
        role: "listbox",
        tabindex: "0",
        "aria-label": label,
        scroll: oncePerFrame(() => this.draw()),
        keydown: (event) => this.#pressed(event),
        click: (event) => {
          const option = event.target.closest("[role=option]");
          if (option) this.pick(Number(option.dataset.i));
        },
      },
      this.room,
    );
    new ResizeObserver(oncePerFrame(() => this.draw())).observe(this.element);
  }

  show(items, picked = -1) {
    this.items = items;
    this.picked = picked;
    this.room.style.blockSize = `${items.length * this.height}px`;
    this.element.scrollTop = 0;
    if (picked >= 0) this.#reveal(picked);
    this.draw();
  }

  draw() {
    const top = this.element.scrollTop;
    const first = Math.max(0, Math.floor(top / this.height) - SPARE);
    const last = Math.min(this.items.length, Math.ceil((top + this.element.clientHeight) / this.height) + SPARE);
    const options = [];
    for (let i = first; i < last; i++) options.push(this.#option(i));
    replace(this.room, options);
    if (this.picked >= 0) this.element.setAttribute("aria-activedescendant", `${this.name}-${this.picked}`);
    else this.element.removeAttribute("aria-activedescendant");
  }

  #option(i) {
    const option = h(
      "div",
      {
        class: "list-row",
        role: "option",
        id: `${this.name}-${i}`,
        "data-i": i,
        "aria-selected": String(i === this.picked),
        "aria-setsize": this.items.length,
        "aria-posinset": i + 1,
      },
      this.row(this.items[i], i),
    );
    option.style.insetBlockStart = `${i * this.height}px`;
    option.style.blockSize = `${this.height}px`;
    return option;
  }

  pick(i) {
    if (i < 0 || i >= this.items.length) return;
    this.picked = i;
    this.#reveal(i);
    this.draw();
    this.onPick(this.items[i], i);
  }

  #reveal(i) {
    const top = i * this.height;
    const room = this.element.clientHeight;
    if (top < this.element.scrollTop) this.element.scrollTop = top;
    else if (top + this.height > this.element.scrollTop + room) this.element.scrollTop = top + this.height - room;
  }

  #pressed(event) {
    const page = Math.max(1, Math.floor(this.element.clientHeight / this.height) - 1);
    const steps = { ArrowUp: -1, ArrowDown: 1, PageUp: -page, PageDown: page, Home: -Infinity, End: Infinity };
    if (!(event.key in steps)) return;
    event.preventDefault();
    const to = this.picked < 0 ? 0 : this.picked + steps[event.key];
    this.pick(Math.min(this.items.length - 1, Math.max(0, to)));
  }
}
