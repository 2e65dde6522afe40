// Charts as SVG, drawn as wide as their room; each has its numbers as a table beside it.

import { folded, h, line, replace, svg, tableOf } from "./dom.js";

const HEIGHT = 280;
const WIDEST_CHART = 480;
const LEFT = 64;
const RIGHT = 20;
const TOP = 20;
const BOTTOM = 40;

/** A figure that is drawn anew whenever its room changes. draw(frame) gives shapes. */
export function chart({ title, says, label, role = "img", draw, table }) {
  const room = h("div", { class: "chart" });
  const redraw = () => {
    const width = Math.min(WIDEST_CHART, Math.max(240, Math.floor(room.clientWidth)));
    const viewBox = `0 0 ${width} ${HEIGHT}`;
    replace(room, svg("svg", { role, "aria-label": label, viewBox, width, height: HEIGHT }, draw(frameOf(width))));
  };
  new ResizeObserver(redraw).observe(room);
  return h(
    "figure",
    null,
    h("figcaption", null, h("h2", null, title), line("sub", says)),
    room,
    folded(table.name, () => tableOf(table.head, table.rows)),
  );
}

/** Maps shares of the plot (0..1 from the left, 0..1 from the bottom) to places. */
function frameOf(width) {
  return {
    x: (share) => LEFT + share * (width - LEFT - RIGHT),
    y: (share) => TOP + (1 - share) * (HEIGHT - TOP - BOTTOM),
  };
}

/** Axes with ticks [[share, name], ...] and names. */
export function axes(frame, ticksX, ticksY, nameX, nameY) {
  const { x, y } = frame;
  return [
    ticksY.map(([at, name]) => [
      svg("line", { class: "grid", x1: x(0), x2: x(1), y1: y(at), y2: y(at) }),
      svg("text", { class: "tick", x: x(0) - 6, y: y(at) + 4, "text-anchor": "end" }, name),
    ]),
    ticksX.map(([at, name]) => svg("text", { class: "tick", x: x(at), y: y(0) + 16, "text-anchor": "middle" }, name)),
    svg("line", { class: "axis", x1: x(0), x2: x(1), y1: y(0), y2: y(0) }),
    svg("text", { class: "tick", x: x(0.5), y: HEIGHT - 6, "text-anchor": "middle" }, nameX),
    svg("text", { class: "tick", "text-anchor": "middle", transform: `translate(12 ${y(0.5)}) rotate(-90)` }, nameY),
  ];
}

export const FIFTHS = [0, 0.2, 0.4, 0.6, 0.8, 1].map((share) => [share, share.toFixed(1)]);

/** Round numbers from 0 (or `low`) to at least `high`, at most about five. */
export function ticksUpTo(high, low = 0) {
  const span = high - low || 1;
  const power = 10 ** Math.floor(Math.log10(span / 4));
  const step = [1, 2, 5, 10].map((n) => n * power).find((s) => span / s <= 5);
  const first = Math.ceil(low / step) * step;
  const ticks = [];
  for (let value = first; value <= high + step * 1e-9; value += step) ticks.push(value);
  return ticks.map((value) => [(value - low) / span, Number(value.toPrecision(6)).toLocaleString("en-GB")]);
}
