// What speaks for a class and against it, on one scale: the tokens of a text as bars, and the classes as bars.

import { bar, foreign, h, svg } from "./dom.js";
import { oneLine, percent, several, shortly } from "./format.js";

const MOST_BARS = 10; // tokens; the others are added up
const MOST_CLASSES = 8;
const HALF = 100; // of the axis, in its own units
const REACH_OF_BASE = 0.7; // of it, for the longest bar of the text without masks; masks make others longer
const THICK = 12;

/**
 * Tokens and their lead: contribution to the label minus contribution to the rival. `base` is the text without masks:
 * it sets the scale and the order, and what a mask took away stays visible as a frame.
 */
export function leadBars(e, base, { label, rival }) {
  const before = new Map(leadsOf(base, rival, label));
  const now = new Map(leadsOf(e, rival, label));
  const names = [...new Set([...before.keys(), ...now.keys()])];
  const size = (name) => Math.max(Math.abs(before.get(name) ?? 0), Math.abs(now.get(name) ?? 0));
  const order = names.filter((name) => size(name) > 0).sort((one, other) => size(other) - size(one));
  const rows = order
    .slice(0, MOST_BARS)
    .map((name) => [foreign(oneLine(name, 40)), before.get(name) ?? 0, now.get(name) ?? 0]);
  const rest = order.slice(MOST_BARS);
  const sum = (leads) => rest.reduce((total, name) => total + (leads.get(name) ?? 0), 0);
  if (rest.length) rows.push([several(rest.length, "other"), sum(before), sum(now)]);
  const lean = [base.lean(rival, label), e.lean(rival, label)];
  if (lean.some(Boolean)) rows.push(["without any word", ...lean]);
  const most = Math.max(...rows.map(([, was]) => Math.abs(was)), 1e-300) / REACH_OF_BASE;
  return rows.map(([name, was, is]) => leadRow(name, was, is, most));
}

function leadsOf(e, rival, label) {
  const leads = e.against(rival, label);
  return e.names.map((name, t) => [name, leads[t]]);
}

function leadRow(name, was, is, most) {
  const changed = Math.abs(was - is) > 0.005;
  return h(
    "li",
    null,
    h("span", { class: is < 0 ? "name slanted" : "name" }, name),
    axis(was, is, most),
    h("span", { class: "num" }, changed ? h("span", { class: "soft" }, `${shortly(was)} → `) : null, shortly(is)),
  );
}

/** A line through zero, the bar of `is`, and a frame where it was; a bar that does not fit has a gap at its end. */
function axis(was, is, most) {
  const side = (value) => (value < 0 ? HALF - width(value) : HALF);
  const width = (value) => HALF * Math.min(1, Math.abs(value) / most);
  const gap = svg("rect", { class: "gap", x: is < 0 ? 3 : 2 * HALF - 5, width: 2, height: THICK });
  const shape = (kind, value) =>
    svg("rect", {
      class: kind,
      x: side(value).toFixed(2),
      width: Math.max(width(value), value ? 0.4 : 0).toFixed(2),
      height: THICK,
    });
  const room = {
    class: "bar",
    viewBox: `0 0 ${2 * HALF} ${THICK}`,
    preserveAspectRatio: "none",
    "aria-hidden": "true",
  };
  return svg(
    "svg",
    room,
    was !== is ? shape("was", was) : null,
    shape(is < 0 ? "fill-n" : "fill-p", is),
    Math.abs(is) > most ? gap : null,
    svg("rect", { class: "zero", x: HALF - 0.2, width: 0.4, height: THICK }),
  );
}

/** The classes, likeliest first; the label and its rival have the colours of the text. */
export function classBars(e, base, { label, rival }) {
  const order = e.probabilities.map((_, k) => k).sort((i, j) => e.probabilities[j] - e.probabilities[i]);
  const shown = order.filter((k, place) => place < MOST_CLASSES || k === label || k === rival);
  const side = (k) => (k === label ? "p" : k === rival ? "n" : "k");
  const rows = shown.map((k) =>
    h(
      "li",
      { class: k === e.label ? "chosen" : null },
      foreign(oneLine(e.model.classes[k].name, 30), { class: "name" }),
      bar(e.probabilities[k], side(k), base === e ? null : base.probabilities[k]),
      h("span", { class: "num" }, percent(e.probabilities[k])),
    ),
  );
  const rest = order.length - shown.length;
  return rest ? [...rows, h("li", { class: "soft" }, `${several(rest, "other class", "other classes")}`)] : rows;
}
