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

/** A table of a head of names and rows of cells (strings or elements); on a narrow screen each row is a card. */
export function tableOf(head, rows, name = "") {
  return h(
    "table",
    { class: `cards ${name}` },
    h(
      "thead",
      null,
      h(
        "tr",
        null,
        head.map((title, i) => h("th", { class: i ? "num" : null, scope: "col" }, title)),
      ),
    ),
    h(
      "tbody",
      null,
      rows.map((row) =>
        h(
          "tr",
          null,
          row.map((content, i) => cellOf(content, head[i], i)),
        ),
      ),
    ),
  );
}

function cellOf(content, title, i) {
  return i
    ? h("td", { class: "num", "data-name": title }, h("span", null, content))
    : h("th", { scope: "row" }, content);
}

/** A room whose contents may be wider or higher than itself: it scrolls, also by keyboard. */
export function scrolling(label, ...children) {
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, children);
}

/** A part that is computed when it is open. */
export function folded(title, make) {
  const body = h("div");
  const element = h("details", { toggle: () => element.renew() }, h("summary", null, title), body);
  element.renew = () => {
    if (element.open) replace(body, make());
  };
  return element;
}

/** A paragraph with a look. */
export function line(look, ...children) {
  return h("p", { class: look }, ...children);
}

export function button(content, click, attributes) {
  return h("button", { type: "button", click, ...attributes }, content);
}

/** A choice among [[value, text], ...]. */
export function choice(label, options, change) {
  const select = h(
    "select",
    { change },
    options.map(([value, text]) => h("option", { value }, text)),
  );
  return { select, element: h("label", null, label, select) };
}

/** A bar of a share of its room, as a picture beside the number that says the same; `was` frames what it was. */
export function bar(share, side, was = null) {
  const width = (part) => (100 * Math.min(1, Math.max(0, part))).toFixed(2);
  const room = { class: "bar", viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true" };
  return svg(
    "svg",
    room,
    svg("rect", { class: "track", width: 100, height: 8 }),
    svg("rect", { class: `fill-${side}`, width: width(share), height: 8 }),
    was === null ? null : svg("rect", { class: "was", width: width(was), height: 8 }),
  );
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
