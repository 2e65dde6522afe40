// Why, in a line: the words that decide one text.

import { foreign, h } from "./dom.js";
import { oneLine } from "./format.js";
import { sentencesOf } from "./proof/sentence.js";

const NAMED = 4; // words that a line names

/** "a, b and 3 more", each name as it is written. */
export function listed(names) {
  const more = names.length > NAMED ? ` and ${names.length - NAMED} more` : "";
  return [names.slice(0, NAMED).map((name, i) => [i ? ", " : "", h("b", null, foreign(oneLine(name, 40)))]), more];
}

/** One line for a list: what the label rests on, and what would change it. */
export function because(e) {
  if (!e.sufficient.size) return [sentencesOf(e, false).because];
  const name = (found) => found.indices.map((t) => e.names[t]);
  const change = e.flip.size
    ? [
        "Without ",
        listed(name(e.flip)),
        " it would say ",
        foreign(oneLine(e.model.classes[e.flip.labelAfter].name, 40)),
        ".",
      ]
    : ["Nothing that is deleted changes it."];
  return ["Because of ", listed(name(e.sufficient)), ". ", change];
}
