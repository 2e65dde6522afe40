// What is proved of one text, in sentences: word for word the certificate's of Python (keytokens/explain/certificate.py).

import { oneLine } from "../format.js";
import { argmax, fixed } from "../numbers.js";
import { extremesKeeping, probabilityOf } from "./ranges.js";

const MOST_NAMED = 4; // members of a set that a sentence names; of more than these one less
const MOST_IN_WORDS = 5000; // words of a text; of longer ones the sentences speak of tokens

/** {because, keep, change, limit}; parts may be empty. Without `inWords` they speak of tokens: sets of words take long. */
export function sentencesOf(e, inWords = true) {
  const { model } = e;
  const label = model.classes[e.label].name;
  const shared = { label, chance: percentOf(model, e.probability) };
  const nothing = { keep: "", change: "", limit: "" };
  if (!e.names.length) return { because: silentOf(e, shared), ...nothing };
  const tokens = (found) => ({ unit: "tokens", found, names: found.indices.map((t) => e.names[t]) });
  const told = (found, instead) =>
    found === null || found.status === "bounds"
      ? tokens(instead)
      : { unit: "words", found, names: found.positions.map((i) => e.text.slice(e.words[i].start, e.words[i].end)) };
  const short = inWords && e.words.length <= MOST_IN_WORDS;
  const kept = told(short ? e.sufficientWords : null, e.sufficient);
  const gone = told(short ? e.flipWords : null, e.flip);
  const least =
    kept.unit === "words"
      ? e.phrase.leastKeeping(kept.found.positions)
      : extremesKeeping(e.votes, kept.found.indices, -1);
  const { covers } = model.sentences.units.tokens;
  const limit = kept.found.tight || gone.found.tight ? `${model.said("tight")} ${covers}` : covers;
  const stays = stayingOf(e, least, shared);
  if (!kept.found.size)
    return { because: model.said("no need", { ...shared, stays }), keep: unknownOf(e), change: "", limit };
  const how = { ...shared, stays, size: kept.found.size, lower: kept.found.lower, unit: kept.unit };
  const name = kept.found.size === 1 ? "keep one" : `keep ${kept.found.status}`;
  const lower = name === "keep subset-minimal" && kept.found.lower > 1 ? ", lower" : "";
  return {
    because: model.said("because", { ...shared, names: namesOf(model, kept) }),
    keep: model.said(name + lower, how),
    change: changeOf(model, gone),
    limit,
  };
}

function changeOf(model, { unit, found, names }) {
  if (!found.size) return model.said("no change", { rest: model.sentences.units[unit].rest });
  const after = model.classes[found.labelAfter].name;
  const facts = { size: found.size, unit, names: namesOf(model, { unit, found, names }), after };
  if (found.size === 1) return model.said("change one", facts);
  const change = model.said("change minimum", facts);
  return model.two ? change : `${change} ${model.said("change to", facts)}`;
}

/** Where no word is known. */
function silentOf(e, shared) {
  const words = wordsOf(e).filter(Boolean).length;
  const name = ["no word", "only word unknown"][words] ?? "no known word";
  return e.model.said(name, { ...shared, words });
}

/** Which words are no masks. */
const wordsOf = (e) => e.words.map((word, i) => word.form !== null && !e.hidden?.has(i));

/** How many words are in no known token; masks are not counted. */
export function unknownWords(e) {
  const known = new Uint8Array(e.words.length);
  e.read.first.forEach((start, o) => known.fill(1, start, start + e.read.size[o]));
  return wordsOf(e).filter((is, i) => is && !known[i]).length;
}

function unknownOf(e) {
  const unknown = unknownWords(e);
  const facts = { unknown, words: wordsOf(e).filter(Boolean).length };
  return unknown ? e.model.said(unknown === 1 ? "unknown one" : "unknown", facts) : "";
}

function percentOf(model, p) {
  if (p > 0.995 && p < 1) return model.said("percent, nearly all");
  return model.said(p > 0 && p < 0.005 ? "percent, nearly none" : "percent", { number: fixed(100 * p, 0) });
}

/** How the label stays. A bound below one half says little by itself: it stays ahead, by least of this rival. */
function stayingOf({ model, votes, probability }, least, shared) {
  const classes = model.classes.length;
  const bound = Math.min(Math.max(model.chance(probabilityOf(least)), 1 / classes), probability);
  const number = Math.floor(100 * bound); // rounded down: what is said must be true
  const rival = model.classes[votes.rivals[argmax(least.map((margin) => -margin))]].name;
  const facts = { ...shared, least: model.said("percent", { number }), rival };
  return model.said(classes > 2 && bound < 0.5 ? "stays ahead" : "stays", facts);
}

/** The first members of a set by name, each name once, and how many others there are. */
function namesOf(model, { unit, found, names }) {
  const times = new Map();
  for (const name of names) times.set(name, (times.get(name) ?? 0) + 1);
  const shown = [...times].slice(0, times.size <= MOST_NAMED ? MOST_NAMED : MOST_NAMED - 1);
  const more = shown.reduce((left, [, n]) => left - n, found.size);
  const quoted = shown.map(([name, n]) => model.said(n === 1 ? "name" : "name again", { name: oneLine(name), times: n }));
  let text = quoted[0];
  if (more) text = model.said("names and more", { first: quoted.join(", "), more });
  else if (quoted.length > 1)
    text = model.said("names", { first: quoted.slice(0, -1).join(", "), last: quoted[quoted.length - 1] });
  const kind = model.sentences.units[unit];
  return kind[found.size === 1 ? "names" : "names of many"].replace("{names}", () => text);
}
