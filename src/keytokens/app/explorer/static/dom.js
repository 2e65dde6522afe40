// Elements by hand. Text only ever enters through text nodes, so nothing in a document, label or name can be markup.

const SVG = "http://www.w3.org/2000/svg";

/** An element. Attributes whose value is a function are listeners; null and false are left out. */
export function h(name, attributes, ...children) {
  return filled(document.createElement(name), attributes, children);
}

export function svg(name, attributes, ...children) {
  return filled(document.createElementNS(SVG, name), attributes, children);
}

function filled(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes || {})) {
    if (typeof value === "function") element.addEventListener(key, value);
    else if (value !== null && value !== undefined && value !== false)
      element.setAttribute(key, value === true ? "" : value);
  }
  element.append(
    ...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false),
  );
  return element;
}

export function replace(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== false));
}

/** A name from outside (a token, a label) inside our own sentences, whichever way it is written. */
export function foreign(text, attributes) {
  return h("bdi", { lang: "", ...attributes }, text);
}

/** A table: head of names, rows of cells (strings or elements); the first column is text, the others numbers. */
export function tableOf(caption, head, rows) {
  const cell = (tag, scope) => (content, i) => h(tag, { class: i ? "num" : null, scope }, content);
  return h(
    "table",
    null,
    caption ? h("caption", null, caption) : null,
    h("thead", null, h("tr", null, head.map(cell("th", "col")))),
    h(
      "tbody",
      null,
      rows.map((row) => h("tr", null, row.map(cell("td")))),
    ),
  );
}

/** A bar of a share of its room, as a picture beside the number that says the same. */
export function bar(share, side) {
  const width = 100 * Math.min(1, Math.max(0, share));
  const room = { class: "bar", viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true" };
  return svg("svg", room, svg("rect", { class: `fill-${side}`, width: width.toFixed(2), height: 8 }));
}

/** Says something to a screen reader. */
export function announce(text) {
  document.getElementById("live").textContent = text;
}

/** At most once a frame. */
export function oncePerFrame(work) {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      work();
    });
  };
}

/** Offers a file; nothing leaves the page. */
export function download(name, type, content) {
  const address = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  h("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

/** The resolved value of one of the style's colours. */
export function colour(name) {
  const probe = document.getElementById("probe");
  probe.style.color = `var(--${name})`;
  return getComputedStyle(probe).color;
}
