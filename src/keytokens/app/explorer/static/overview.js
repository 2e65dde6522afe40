// How good the model is on the given texts.

import { FIFTHS, axes, chart, ticksUpTo } from "./charts.js";
import { foreign, h, replace, svg, tableOf } from "./dom.js";
import { oneLine, percent, several, whole } from "./format.js";

const MATRIX = 12; // classes of which the whole matrix is shown

export function showOverview(room, overview, model) {
  const { facts } = model;
  const pruned = facts.whole_size
    ? h(
        "p",
        { class: "note" },
        `This page holds the ${whole(model.size)} tokens with the largest mean contribution, of the ${whole(facts.whole_size)} that the model had. Every number here is that of the smaller model.`,
      )
    : null;
  if (!overview) {
    replace(
      room,
      h("h2", null, "Overview"),
      pruned,
      h("p", null, "No labelled texts were given, so there is no score."),
      training(model),
    );
    return;
  }
  replace(
    room,
    h("h2", null, "Overview"),
    pruned,
    h("div", { class: "cards" }, score(overview), baseline(overview), size(model)),
    h(
      "p",
      { class: "soft" },
      overview.note ||
        "Measured on the texts that this page was made from. If the model was trained on them, the score flatters it.",
    ),
    h("div", { class: "figures" }, matrix(overview), calibration(overview), histogram(overview), training(model)),
  );
}

function card(title, figure, ...says) {
  return h(
    "div",
    { class: "card stat" },
    h("p", { class: "soft" }, title),
    h("p", { class: "big" }, figure),
    says.map((line) => h("p", { class: "soft" }, line)),
  );
}

function score({ accuracy, interval, right, texts }) {
  const known = texts > 0;
  return card(
    "Accuracy",
    known ? percent(accuracy, 2) : "–",
    known ? `95 % interval ${percent(interval[0], 2)} to ${percent(interval[1], 2)}` : "no texts",
    `${whole(right)} of ${several(texts, "text")} right`,
  );
}

function baseline({ baseline: share, log_loss: loss }) {
  return card(
    "Most frequent label",
    share === null ? "–" : percent(share, 2),
    "what always saying it would score",
    loss === null ? "log loss: not finite" : `log loss of the model ${loss.toFixed(4)}`,
  );
}

function size(model) {
  const { order, counts, log_sink: sink, options } = model.facts;
  const says = `n-grams of up to ${several(order, "word")}, ${counts} counts, ${sink === null ? "no sink" : "with a sink"}`;
  const penalty = options.prior__attention_penalty === undefined ? null : `attention penalty ${options.prior__attention_penalty}`;
  return card("Tokens", whole(model.size), says, ...(penalty ? [penalty] : []));
}

// --- confusions

function matrix(overview) {
  const { names, known, confusions } = overview;
  const rows = new Map();
  for (const [t, p, c] of confusions) {
    if (!rows.has(t)) rows.set(t, new Map());
    rows.get(t).set(p, c);
  }
  const many = names.length > MATRIX;
  return h(
    "figure",
    { class: "card" },
    h(
      "figcaption",
      null,
      h("h3", null, "Confusion matrix"),
      h(
        "p",
        { class: "soft" },
        many ? "The most frequent confusions." : "Rows: the given label. Columns: what the model says. Framed: right.",
      ),
    ),
    h("div", { class: "scroll" }, many ? confusionList(names, confusions) : confusionTable(names, known, rows)),
  );
}

function confusionTable(names, known, rows) {
  const columns = names.slice(0, known);
  const shown = names.map((_, t) => t).filter((t) => t < known || rows.has(t));
  const head = h(
    "tr",
    null,
    h("td"),
    columns.map((name) => h("th", { scope: "col" }, foreign(oneLine(name, 24)))),
    h("th", { scope: "col" }, "recall"),
  );
  const line = (t) => {
    const row = rows.get(t) || new Map();
    const total = [...row.values()].reduce((sum, c) => sum + c, 0);
    const cells = columns.map((_, p) => {
      const c = row.get(p) || 0;
      const level = total ? Math.ceil((8 * c) / total) : 0;
      return h(
        "td",
        { class: `num cell ${p === t ? "hit" : ""} ${level ? (p === t ? "p" : "n") + Math.min(8, level) : ""}` },
        whole(c),
      );
    });
    const recall = total && t < known ? percent((row.get(t) || 0) / total) : "–";
    return h(
      "tr",
      null,
      h("th", { scope: "row" }, foreign(oneLine(names[t], 24))),
      cells,
      h("td", { class: "num" }, recall),
    );
  };
  const precision = columns.map((_, p) => {
    const total = [...rows.values()].reduce((sum, row) => sum + (row.get(p) || 0), 0);
    return h("td", { class: "num" }, total ? percent((rows.get(p)?.get(p) || 0) / total) : "–");
  });
  return h(
    "table",
    { class: "matrix" },
    h("thead", null, head),
    h("tbody", null, shown.map(line), h("tr", null, h("th", { scope: "row" }, "precision"), precision, h("td"))),
  );
}

function confusionList(names, confusions) {
  const wrong = confusions
    .filter(([t, p]) => t !== p)
    .sort((a, b) => b[2] - a[2])
    .slice(0, 30);
  return tableOf(
    null,
    ["given label", "model says", "texts"],
    wrong.map(([t, p, c]) => [foreign(oneLine(names[t], 30)), foreign(oneLine(names[p], 30)), whole(c)]),
  );
}

// --- curves

function claimed({ known, names }) {
  return known === 2 ? ["P(", foreign(oneLine(names[1], 24)), ")"] : ["P(predicted label)"];
}

function claimedText({ known, names }) {
  return known === 2 ? `P(${oneLine(names[1], 24)})` : "P(predicted label)";
}

function calibration(overview) {
  const { bins, error } = overview.calibration;
  const filled = bins.filter((bin) => bin.texts > 0);
  const event = overview.known === 2 ? "share of texts with that label" : "share that is right";
  const draw = (frame) => {
    const { x, y } = frame;
    const path = filled.map((bin, i) => `${i ? "L" : "M"}${x(bin.mean)} ${y(bin.share)}`).join("");
    return [
      axes(frame, FIFTHS, FIFTHS, claimedText(overview), "came true"),
      svg("line", { class: "ideal", x1: x(0), y1: y(0), x2: x(1), y2: y(1) }),
      filled.map(({ mean, interval }) =>
        svg("line", { class: "whisker", x1: x(mean), x2: x(mean), y1: y(interval[0]), y2: y(interval[1]) }),
      ),
      svg("path", { class: "curve", d: path || "M0 0" }),
      filled.map(({ mean, share }) => svg("circle", { class: "dot", cx: x(mean), cy: y(share), r: 3.5 })),
    ];
  };
  const far = error === null ? "" : ` The two are ${percent(error)} apart on average.`;
  return chart({
    title: "Calibration curve",
    says: [...claimed(overview), ` against the ${event}, with 95 % intervals; the dashed line is perfect.${far}`],
    label: `Calibration curve: ${filled.map((bin) => `${bin.mean.toFixed(2)} came true ${bin.share.toFixed(2)}`).join(", ")}`,
    draw,
    table: {
      head: ["mean probability", "came true", "interval", "texts"],
      rows: filled.map((bin) => [
        bin.mean.toFixed(4),
        bin.share.toFixed(4),
        `${bin.interval[0].toFixed(3)} – ${bin.interval[1].toFixed(3)}`,
        whole(bin.texts),
      ]),
    },
  });
}

function histogram(overview) {
  const [one, other] = overview.histogram;
  const most = Math.max(1, ...one.map((c, i) => c + other[i]));
  const names = overview.known === 2 ? overview.names.slice(0, 2).map((name) => oneLine(name, 24)) : ["right", "wrong"];
  const kinds = overview.known === 2 ? ["n", "p"] : ["p", "n"];
  const draw = (frame) => {
    const { x, y, across } = frame;
    const wide = across / one.length;
    const block = (kind, i, from, to) =>
      svg("rect", {
        class: `fill-${kind}`,
        x: x(i / one.length) + 0.5,
        width: Math.max(1, wide - 1),
        y: y(to / most),
        height: Math.max(0, y(from / most) - y(to / most)),
      });
    return [
      axes(frame, FIFTHS, ticksUpTo(most), claimedText(overview), "texts"),
      one.map((c, i) => [block(kinds[0], i, 0, c), block(kinds[1], i, c, c + other[i])]),
    ];
  };
  return chart({
    title: "Probabilities",
    says: [
      h("span", { class: `key fill-${kinds[0]}` }),
      foreign(names[0]),
      " below, ",
      h("span", { class: `key fill-${kinds[1]}` }),
      foreign(names[1]),
      " on top of it",
    ],
    label: `Histogram of ${claimedText(overview)}`,
    draw,
    table: {
      head: ["from", ...names, "to"],
      rows: one.map((c, i) => [
        (i / one.length).toFixed(2),
        whole(c),
        whole(other[i]),
        ((i + 1) / one.length).toFixed(2),
      ]),
    },
  });
}

function training(model) {
  const { history, status } = model.facts;
  const low = Math.min(...history),
    high = Math.max(...history);
  const span = high - low || 1;
  const draw = (frame) => {
    const { x, y } = frame;
    const at = (i) => (history.length > 1 ? i / (history.length - 1) : 0.5);
    const steps = ticksUpTo(history.length - 1 || 1).filter(([share, name]) => share <= 1 && !name.includes("."));
    return [
      axes(frame, steps, ticksUpTo(high, low), "step", "objective"),
      svg("path", {
        class: "curve",
        d: history.map((v, i) => `${i ? "L" : "M"}${x(at(i))} ${y((v - low) / span)}`).join(""),
      }),
      history.map((v, i) =>
        svg("circle", { class: "dot", cx: x(at(i)), cy: y((v - low) / span), r: history.length > 60 ? 1.5 : 3 }),
      ),
    ];
  };
  if (!history.length)
    return h(
      "figure",
      { class: "card" },
      h(
        "figcaption",
        null,
        h("h3", null, "Training curve"),
        h("p", { class: "soft" }, "The model carries no history."),
      ),
    );
  return chart({
    title: "Training curve",
    says: `The objective from the start to step ${history.length - 1}. ${status}`,
    label: `Training curve: the objective falls from ${high.toPrecision(5)} to ${low.toPrecision(5)}`,
    draw,
    table: { head: ["step", "objective"], rows: history.map((v, i) => [String(i), v.toPrecision(8)]) },
  });
}
