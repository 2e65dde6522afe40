// Can its probabilities be trusted? What it claimed against how often it was right; a dot is a group of texts.

import { addressOf } from "./address.js";
import { FIFTHS, axes, chart } from "./charts.js";
import { svg } from "./dom.js";
import { percent, several, whole } from "./format.js";

const VERDICTS = {
  "too modest": "It is too modest",
  "too sure": "It is too sure",
  "about right": "About right",
};

export function trust({ calibration: { bins, error, verdict } }) {
  const filled = bins.map((bin, place) => ({ ...bin, place })).filter((bin) => bin.texts > 0);
  const most = Math.max(1, ...filled.map((bin) => bin.texts));
  const draw = (frame) => {
    const { x, y } = frame;
    return [
      axes(frame, FIFTHS, FIFTHS, "it says", "it is right"),
      svg("line", { class: "ideal", x1: x(0), y1: y(0), x2: x(1), y2: y(1) }),
      filled.map(({ mean, share, texts, place }) => {
        const says = `says ${percent(mean)}, right on ${percent(share)} of ${several(texts, "text")}`;
        const href = addressOf("errors", { show: "all", from: place / bins.length, to: (place + 1) / bins.length });
        const dot = svg("circle", {
          class: "dot",
          cx: x(mean),
          cy: y(share),
          r: Math.max(3, 16 * Math.sqrt(texts / most)),
        });
        return svg("a", { href, "aria-label": says }, svg("title", null, says), dot);
      }),
    ];
  };
  return chart({
    title: "Can its probabilities be trusted?",
    says: [
      verdict ? `${VERDICTS[verdict]}: ` : "Too few texts to tell. ",
      example(filled, verdict),
      " A dot is a group of texts, its area their number.",
    ],
    label: "What it says against how often it is right",
    role: "group",
    draw,
    table: {
      name: `The numbers${error === null ? "" : `: ${percent(error)} apart on average`}`,
      head: ["it says", "it is right", "95 % interval", "texts"],
      rows: filled.map(({ mean, share, interval, texts }) => [
        percent(mean),
        percent(share),
        `${percent(interval[0])} to ${percent(interval[1])}`,
        whole(texts),
      ]),
    },
  });
}

/** The group of texts that shows the verdict best. */
function example(filled, verdict) {
  if (!filled.length || !verdict) return "";
  const gap = ({ mean, share, texts }) => (verdict === "too sure" ? mean - share : share - mean) * texts;
  const worth = verdict === "about right" ? ({ texts }) => texts : gap;
  const best = filled.reduce((one, other) => (worth(other) > worth(one) ? other : one));
  return `when it says ${percent(best.mean)}, it is right in ${percent(best.share)} of the cases.`;
}
