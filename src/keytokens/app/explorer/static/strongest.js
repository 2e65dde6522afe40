// The strongest words of each class, as small charts on one scale.

import { addressOf } from "./address.js";
import { bar, foreign, h } from "./dom.js";
import { oneLine } from "./format.js";

const STRONGEST = 8; // words of a class on the first view
const MOST_CLASSES_SHOWN = 40;

/** The strongest words of each class as bars on one scale: mean attention times value. */
export function strongestWords(model) {
  const found = model.classes.slice(0, MOST_CLASSES_SHOWN).map((_, k) => strongestOf(model, k));
  const most = Math.max(...found.flat().map(({ worth }) => worth), 1e-300);
  return found.map((words, k) => {
    const { name } = model.classes[k];
    const rows = words.map(({ s, worth }) =>
      h("li", null, bar(worth / most, "p"), foreign(oneLine(model.tokens[s], 30))),
    );
    const link = h("a", { href: addressOf("words", { speaks: name }) }, foreign(oneLine(name, 30)));
    return h(
      "section",
      null,
      h("h3", null, link),
      h("ul", null, rows.length ? rows : h("li", { class: "soft" }, "no word")),
    );
  });
}

function strongestOf(model, k) {
  const best = [];
  for (let s = 0; s < model.size; s++) {
    const value = model.two && k === 0 ? -model.value(s, 1) : model.value(s, k);
    const worth = model.meanAttention[s] * value;
    if (!(worth > 0) || (best.length === STRONGEST && worth <= best[STRONGEST - 1].worth)) continue;
    best.push({ s, worth });
    best.sort((one, other) => other.worth - one.worth);
    best.length = Math.min(best.length, STRONGEST);
  }
  return best;
}
