// Why, in a line: the words that decide one text.

import { foreign, h } from "./dom.js";
import { oneLine } from "./format.js";

const NAMED = 4; // words that a line names

/** "a, b and 3 more", each name as it is written. */
export function listed(names) {
  const more = names.length > NAMED ? ` and ${names.length - NAMED} more` : "";
  return [names.slice(0, NAMED).map((name, i) => [i ? ", " : "", h("b", null, foreign(oneLine(name, 40)))]), more];
}

/** Words of the text that are in no known token; masks are not counted. */
export function unknownWords(e) {
  const known = new Uint8Array(e.words.length);
  const { first, size } = e.read;
  first.forEach((start, o) => known.fill(1, start, start + size[o]));
  e.hidden?.forEach((i) => (known[i] = 1));
  return known.reduce((count, flag) => count - flag, e.words.length);
}

/** Where no word decides, that is said: the model falls back on how common the class is. Null where words decide. */
export function fallback(e) {
  const silent = e.attention[e.attention.length - 1] > 0.5 && e.sufficient.size === 0;
  if (e.names.length && !silent) return null;
  const unknown = unknownWords(e);
  const words = e.words.length === 1 ? "its one word is" : `${unknown} of its ${e.words.length} words are`;
  return [
    e.words.length ? "Nothing in this text decides: " : "This text has no words: ",
    unknown ? `${words} unknown, ` : "",
    "the model falls back on how common ",
    h("b", null, foreign(oneLine(e.model.classes[e.label].name, 40))),
    " is.",
  ];
}

/** One line for a list: what the label rests on, and what would change it. */
export function because(e) {
  const none = fallback(e);
  if (none) return none;
  const name = (found) => found.indices.map((t) => e.names[t]);
  const label = foreign(oneLine(e.model.classes[e.label].name, 40));
  const change = e.flip.size
    ? [
        "Without ",
        listed(name(e.flip)),
        " it would say ",
        foreign(oneLine(e.model.classes[e.flip.labelAfter].name, 40)),
        ".",
      ]
    : ["Nothing that is deleted changes it."];
  if (!e.sufficient.size) return ["No word is needed: it says ", label, " without any of them."];
  return ["Because of ", listed(name(e.sufficient)), ". ", change];
}
