// One highlighted text. Words can be reached with the arrow keys; a long text is marked only where it is looked at,
// and of a short one only what has changed is drawn anew.

import { h, replace } from "./dom.js";
import { broken, clean } from "./format.js";
import { markClasses } from "./marks.js";

const BLOCK = 400; // words; a text of more than three blocks is cut into blocks
const LONG_WORD = 2000; // characters of one word or gap that are drawn; the rest is counted

export class TextView {
  /** onInspect(word number); onWord(word number) when one is pressed. */
  constructor({ label, onInspect, onWord }) {
    this.onInspect = onInspect;
    this.onWord = onWord;
    this.active = 0;
    this.blocks = [];
    this.element = h("div", {
      class: "text pressable",
      dir: "auto",
      lang: "",
      role: "group",
      "aria-label": label,
      click: (event) => this.#clicked(event),
      keydown: (event) => this.#pressed(event),
      mouseover: (event) => this.#pointed(event),
      focusin: (event) => this.#pointed(event),
    });
    this.watcher = new IntersectionObserver((entries) => entries.forEach((entry) => this.#seen(entry)), {
      rootMargin: "400px",
    });
  }

  /** `hidden`: the words that are masked, a Set; `marks`: what `marksOf` gives. */
  show(e, hidden, marks) {
    this.words = e.words;
    this.hidden = hidden;
    this.text = clean(e.text); // as long as before, so places stay true
    this.marks = marks;
    this.active = Math.min(Math.max(this.active, 0), Math.max(0, this.words.length - 1));
    const n = this.words.length;
    const step = n > 3 * BLOCK ? BLOCK : Math.max(1, n);
    const bounds = [];
    for (let from = 0; from < Math.max(1, n); from += step) bounds.push([from, Math.min(n, from + step)]);
    this.long = bounds.length > 1;
    if (this.long || this.blocks.length !== 1) this.#lay(bounds);
    else Object.assign(this.blocks[0], { from: 0, to: n });
    if (!this.long) this.#mark(this.blocks[0]);
    this.#open();
  }

  #lay(bounds) {
    this.watcher.disconnect();
    this.blocks = bounds.map(([from, to], b) => {
      const block = { from, to, last: b === bounds.length - 1, drawn: [], marked: false };
      block.element = h("div", { class: "block", dir: "auto" });
      block.element.blockOf = block;
      return block;
    });
    replace(
      this.element,
      this.blocks.map((block) => block.element),
    );
    if (!this.long) return;
    for (const block of this.blocks) {
      block.element.append(shortened(broken(this.#slice(block)), BLOCK * LONG_WORD));
      this.watcher.observe(block.element);
    }
  }

  #slice({ from, to, last }) {
    const start = from === 0 ? 0 : this.words[from - 1].end;
    return this.text.slice(start, last ? undefined : this.words[to - 1].end);
  }

  /** Marks where the reader looks, plain text elsewhere: both take the same room. */
  #seen({ target, isIntersecting }) {
    const block = target.blockOf;
    if (!this.long || isIntersecting === block.marked || !target.isConnected) return;
    if (isIntersecting) {
      replace(target);
      this.#mark(block);
    } else if (!target.contains(document.activeElement)) {
      Object.assign(block, { marked: false, drawn: [] });
      replace(target, broken(this.#slice(block)));
    }
  }

  #mark(block) {
    patch(block.element, block.drawn, (block.drawn = this.#parts(block)));
    block.marked = true;
  }

  /** What a block consists of: words, marked gaps, and plain text between them. */
  #parts({ from, to, last }) {
    const { word, gap, most } = this.marks;
    const { text, hidden } = this;
    const parts = [];
    let at = from === 0 ? 0 : this.words[from - 1].end;
    const between = (end, classes) => {
      if (end > at)
        parts.push({ kind: classes ? "gap" : "text", text: shortened(broken(text.slice(at, end))), classes });
    };
    for (let i = from; i < to; i++) {
      const { start, end } = this.words[i];
      between(start, markClasses(gap, i, most));
      const classes = hidden.has(i) ? "w off" : `w ${markClasses(word, i, most)}`;
      parts.push({ kind: "word", text: shortened(text.slice(start, end)), classes, word: i });
      at = end;
    }
    if (last) between(text.length, "");
    return parts;
  }

  #node(i) {
    const block = this.blocks.find(({ from, to }) => from <= i && i < to);
    if (!block) return null;
    if (!block.marked) {
      replace(block.element);
      this.#mark(block);
    }
    return block.drawn.find((part) => part.word === i).node;
  }

  #wordOf(event) {
    return event.target.wordNumber ?? null;
  }

  #pointed(event) {
    const i = this.#wordOf(event);
    if (i !== null && i < this.words.length) this.onInspect(i);
  }

  #clicked(event) {
    const i = this.#wordOf(event);
    if (i === null) return;
    this.focus(i);
    this.onWord(i);
  }

  #pressed(event) {
    const i = this.#wordOf(event);
    if (i === null) return;
    const back = getComputedStyle(event.target).direction === "rtl" ? 1 : -1;
    const steps = { ArrowLeft: back, ArrowRight: -back, ArrowUp: -10, ArrowDown: 10, Home: -Infinity, End: Infinity };
    if (event.key in steps) {
      this.focus(Math.min(this.words.length - 1, Math.max(0, i + steps[event.key])));
    } else if (event.key === "Enter" || event.key === " ") {
      this.onWord(i);
    } else return;
    event.preventDefault();
  }

  /** One word at a time is in the order of the tab key, and only that one says that it can be pressed. */
  #open() {
    for (const name of ["tabindex", "role", "aria-pressed"]) this.opened?.removeAttribute(name);
    this.opened = this.#node(this.active);
    if (!this.opened) return;
    this.opened.tabIndex = 0;
    this.opened.setAttribute("role", "button");
    this.opened.setAttribute("aria-pressed", this.hidden.has(this.active));
  }

  /** Puts the keyboard on word i. */
  focus(i) {
    this.active = i;
    this.#open();
    this.opened?.focus();
  }
}

/** Turns the nodes of `before` into those of `after`: what stands at both ends with the same text is kept. */
function patch(element, before, after) {
  const same = (one, other) => one.kind === other.kind && one.text === other.text;
  const most = Math.min(before.length, after.length);
  let head = 0;
  while (head < most && same(before[head], after[head])) {
    keepNode(before[head], after[head]);
    head++;
  }
  let tail = 0;
  while (tail < most - head && same(before[before.length - 1 - tail], after[after.length - 1 - tail])) {
    keepNode(before[before.length - 1 - tail], after[after.length - 1 - tail]);
    tail++;
  }
  for (let i = head; i < before.length - tail; i++) before[i].node.remove();
  const fresh = document.createDocumentFragment();
  for (let i = head; i < after.length - tail; i++) fresh.append(newNode(after[i]));
  element.insertBefore(fresh, tail ? after[after.length - tail].node : null);
}

function keepNode(before, after) {
  after.node = before.node;
  if (after.classes !== before.classes) after.node.className = after.classes;
  if (after.kind === "word") after.node.wordNumber = after.word;
}

function newNode(part) {
  if (part.kind === "text") {
    part.node = document.createTextNode(part.text);
  } else {
    part.node = document.createElement("span");
    part.node.className = part.classes;
    part.node.textContent = part.text;
    if (part.kind === "word") part.node.wordNumber = part.word;
  }
  return part.node;
}

const PASSAGE = 34; // words of a long text that stand for it

/** The part of a text where most is said, marked: for lists. */
export function passage(e, marks) {
  const { words } = e;
  const text = clean(e.text);
  const ink = Array.from(marks.word.ink, (x, i) => Math.abs(x) * (words[i].end - words[i].start));
  let from = 0;
  if (words.length > PASSAGE) {
    let sum = ink.slice(0, PASSAGE).reduce((total, x) => total + x, 0);
    let most = sum;
    for (let i = 1; i + PASSAGE <= words.length; i++) {
      sum += ink[i + PASSAGE - 1] - ink[i - 1];
      if (sum > most * (1 + 1e-9)) [most, from] = [sum, i];
    }
  }
  const to = Math.min(words.length, from + PASSAGE);
  const flat = (start, end) => shortened(broken(text.slice(start, end)).replace(/\s+/g, " "), 200);
  const parts = [from ? "… " : flat(0, words[0]?.start ?? text.length)];
  for (let i = from; i < to; i++) {
    if (i > from) parts.push(markedGap(flat(words[i - 1].end, words[i].start), markClasses(marks.gap, i, marks.most)));
    const { start, end } = words[i];
    parts.push(markedGap(shortened(text.slice(start, end), 200), `w ${markClasses(marks.word, i, marks.most)}`));
  }
  parts.push(to < words.length ? " …" : to ? flat(words[to - 1].end, text.length) : "");
  return parts;
}

function markedGap(text, classes) {
  return classes && text ? h("span", { class: classes }, text) : text;
}

function shortened(text, most = LONG_WORD) {
  if (text.length <= most) return text;
  return `${text.slice(0, most)}… (${(text.length - most).toLocaleString("en-GB")} more characters)`;
}
