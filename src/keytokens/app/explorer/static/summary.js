// The first view: how good the model is, where it fails, what it gets wrong, what decides, and what it is.

import { aboutModel } from "./about.js";
import { addressOf } from "./address.js";
import { because } from "./because.js";
import { weakestFirst, confusionMatrix } from "./classes.js";
import { foreign, h, line, replace } from "./dom.js";
import { SEEN, apart, surest, wrongLine } from "./errors.js";
import { Explanation } from "./explain.js";
import { oneLine, percent, several, whole } from "./format.js";
import { marksOf } from "./marks.js";
import { strongestWords } from "./strongest.js";
import { passage } from "./text.js";
import { trust } from "./trust.js";

const MISTAKES = 5; // that are shown
const LONG_TEXT = 3000; // of a text that is explained here
const UNSEEN = "texts it had never seen";
const KINDS = {
  "held-out": [UNSEEN, "held out from the training"],
  "out-of-fold": ["texts unseen in training", "out of fold: each asked of a model trained on others"],
  "other texts": [UNSEEN, "other texts than those of the training"],
  mixed: [UNSEEN, "texts of several kinds"],
  "not known": ["texts", "not known whether it was trained on them"],
};
const UNKNOWN =
  "This page cannot say how good the model is: it was trained on these texts. Score it on others, or train with keytokens fit, which keeps honest scores.";

export class SummaryView {
  constructor(room, page) {
    const { overview, model, documents } = page;
    const scored = overview && overview.n > 0;
    const honest = scored && overview.kind !== SEEN;
    replace(
      room,
      h("div", { class: "wide head" }, headline(overview, scored), notes(overview)),
      honest ? h("section", { class: "most" }, weakestFirst(overview)) : null,
      honest ? h("section", { class: "least" }, confusionMatrix(overview)) : null,
      scored && documents ? h("section", { class: "wide" }, mistakes(overview, model, documents)) : null,
      h("section", { class: "wide" }, ...decides(model)),
      honest ? h("section", { class: "half" }, trust(overview)) : null,
      h("section", { class: honest ? "half" : "wide" }, ...aboutModel(model, overview)),
    );
  }

  show() {}
}

/** Right on how many of how many texts, and of what kind these were. */
function headline(overview, scored) {
  if (!scored) {
    return [
      h("h1", null, "No score yet"),
      line("sub", overview?.note || "This page has no labelled texts, so it cannot say how good the model is."),
    ];
  }
  const { n, right, kind, accuracy } = overview;
  if (kind === SEEN) {
    return [
      h("h1", null, "No score on texts it had never seen"),
      line("sub", overview.note || UNKNOWN),
      line(
        "small",
        badge(SEEN, "doubt"),
        ` Right on ${whole(right)} of ${whole(n)} texts of its own training (${percent(accuracy)}).`,
      ),
    ];
  }
  const [texts, says] = KINDS[kind];
  return [
    h("h1", null, `Right on ${whole(right)} of ${whole(n)} ${texts}: ${percent(accuracy)}`),
    line("sub", ...standing(overview), " ", badge(says, kind === "not known" ? "doubt" : "")),
    overview.note ? line("sub", overview.note) : null,
  ];
}

function badge(says, look = "") {
  return says ? h("span", { class: `badge ${look}` }, says) : null;
}

/** The interval, what always saying the commonest class would score, and the weakest class. */
function standing({ interval, baseline, names, classes, uncovered, known }) {
  const name = (k) => h("b", null, foreign(oneLine(names[k], 40)));
  const open = classes
    .map((_, k) => k)
    .filter((k) => k < known && classes[k]?.recall != null && !uncovered.includes(k));
  open.sort((i, j) => classes[i].recall - classes[j].recall || classes[j].texts - classes[i].texts);
  const weakest = open.length > 1 ? classes[open[0]] : null;
  return [
    interval ? `95 % interval: ${percent(interval[0])} to ${percent(interval[1])}. ` : "",
    baseline ? ["Always saying ", name(baseline.name), ` would be right on ${percent(baseline.share)}. `] : "",
    weakest
      ? [
          "Weakest class: ",
          name(open[0]),
          `, found in ${percent(weakest.recall)} of its ${several(weakest.texts, "text")}.`,
        ]
      : "",
  ];
}

/** What the score does not cover, and what was left out of the page. */
function notes(overview) {
  if (!overview) return null;
  const { n, kinds, uncovered, names = [], known, left_out: left } = overview;
  const seen = overview.kind === SEEN ? 0 : (kinds?.[SEEN] ?? 0);
  const list = (places) => places.slice(0, 6).map((k, i) => [i ? ", " : "", foreign(oneLine(names[k], 30))]);
  const strange = names.map((_, k) => k).slice(known);
  const lines = [
    n && seen
      ? [`${several(seen, "of the given texts was", "of the given texts were")} seen in training and are not counted.`]
      : null,
    uncovered?.length
      ? ["The score says nothing of ", list(uncovered), ": no model knew it that had not seen its texts."]
      : null,
    strange.length
      ? ["Labels that the model does not know count as wrong: ", list(strange), strange.length > 6 ? " …" : "", "."]
      : null,
    ...(left ?? []).map((sentence) => [sentence]),
  ].filter(Boolean);
  return lines.length
    ? h(
        "ul",
        { class: "notes" },
        lines.map((says) => h("li", null, says)),
      )
    : null;
}

// --- what it gets wrong

function mistakes({ n, right, names, kind }, model, documents) {
  const wrong = surest(documents.rows, kind);
  const all = n - right;
  const title = h("h2", null, "What it gets wrong");
  if (!all) return [title, line("sub", "Nothing: it is right on all of these texts.")];
  if (!wrong.length) return [title, line("sub", "None of its mistakes is among the texts of this page.")];
  const link =
    wrong.length < all
      ? `All ${whole(wrong.length)} that are in this page, of ${whole(all)}`
      : `All ${several(all, "mistake")}`;
  const rows = wrong.slice(0, MISTAKES);
  return [
    title,
    line(
      "sub",
      `The ${rows.length > 1 ? `${rows.length} mistakes` : "mistake"} it was surest of. `,
      ...[
        h("b", { class: "p4" }, "Blue"),
        " speaks for what it said, ",
        h("b", { class: "n4" }, "orange"),
        " against. ",
      ],
      h("a", { href: addressOf("errors", { show: "wrong" }) }, link),
    ),
    h(
      "ol",
      { class: "mistakes" },
      rows.map((row) => mistake(row, model, names)),
    ),
  ];
}

function mistake(row, model, names) {
  const href = addressOf("errors", { show: "wrong", text: row.row + 1 });
  const e = row.text.length < 8 * LONG_TEXT ? new Explanation(model, row.text) : null;
  const known = row.truth < model.classes.length;
  const shown = e
    ? passage(e, marksOf(e, { label: row.label, rival: known ? row.truth : e.rival }))
    : oneLine(row.text, 300);
  const now = e && foreign(oneLine(model.classes[e.label].name, 40));
  const why = !e
    ? "A long text: open it to see why."
    : e.label === row.label
      ? because(e)
      : [
          `The model of this page, which ${apart(row) ? "was trained on this text too" : "is a smaller one"}, says `,
          now,
          ".",
        ];
  return h(
    "li",
    null,
    h("p", { class: "passage", dir: "auto", lang: "" }, shown),
    line("small", h("a", { href }, wrongLine(row, names))),
    line("small soft", why),
  );
}

// --- what decides

function decides(model) {
  const scale = "The words that move each class most, on one scale: their mean lead over the texts of the training. ";
  return [
    h("h2", null, "What decides"),
    line("sub", scale, h("a", { href: "#words" }, "All words, as a list and a map")),
    h("div", { class: "multiples" }, strongestWords(model)),
  ];
}
