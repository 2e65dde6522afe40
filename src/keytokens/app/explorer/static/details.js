// One explanation in numbers: sets of tokens, every token's attention and value, and how far deletions reach.

import { foreign, h, line, tableOf } from "./dom.js";
import { figure, highEnd, lowEnd, oneLine, several, signed, whole } from "./format.js";

const MOST_ROWS = 24; // tokens of a table or a set

export function detailsOf(e, { label, rival }) {
  if (!e.names.length) return [line("soft", "The text has no known token.")];
  return [
    h("h3", null, "Fewest tokens"),
    setOfTokens(e, "Keep: ", e.sufficient),
    setOfTokens(e, "Delete: ", e.flip),
    h("h3", null, "All tokens"),
    ...tokens(e, label, rival),
    h("h3", null, "Range of the probability"),
    ...ranges(e),
  ];
}

function setOfTokens(e, title, found) {
  const names = found.indices.slice(0, MOST_ROWS).map((t, i) => [i ? ", " : "", foreign(oneLine(e.names[t]))]);
  const more = found.size > MOST_ROWS ? ` and ${whole(found.size - MOST_ROWS)} more` : "";
  return h(
    "p",
    null,
    h("b", null, title),
    names,
    more,
    names.length ? ". " : "",
    h("span", { class: "soft" }, setLine(e, found)),
  );
}

/** What is proved of the size of a set of tokens. */
function setLine({ model, votes }, found) {
  const { rest } = model.sentences.units.tokens;
  const name = {
    none: votes.hasSink ? "set none, sink" : "set none",
    bounds: found.size ? "set bounds" : "set not found",
  }[found.status];
  const facts = {
    doing: "deletion",
    rest,
    unit: "token",
    size: whole(found.size),
    items: several(votes.tokens, "token"),
  };
  facts.lower = found.size ? found.lower : several(found.lower, "token");
  return model.said(name ?? (found.size ? `set ${found.status}` : "set empty"), facts);
}

function tokens(e, label, rival) {
  const [own, other] = [label, rival].map((k) => foreign(oneLine(e.model.classes[k].name, 30)));
  const lead = e.against(rival, label);
  const order = e.names.map((_, t) => t).sort((i, j) => Math.abs(lead[j]) - Math.abs(lead[i]));
  const rows = order
    .slice(0, MOST_ROWS)
    .map((t) => [
      foreign(oneLine(e.names[t])),
      whole(e.read.occurrences[t]),
      figure(e.attention[t]),
      signed(e.values[label][t] - e.values[rival][t]),
      signed(lead[t]),
    ]);
  const sum = lead.reduce((total, x) => total + x, e.lean(rival, label));
  return [
    line(
      "soft",
      ...["A lead is attention times value, for ", own, " minus for ", other, ". "],
      `The ${several(e.names.length, "token")} and the sink's ${signed(e.lean(rival, label))} add up to ${signed(sum)}; the logit is ${signed(e.logit)}.`,
    ),
    tableOf(["token", "times", "attention", "value", "lead"], rows),
  ];
}

function ranges(e) {
  const rows = e.deleting.map(([m, low, high]) => [`at most ${several(m, "token")}`, lowEnd(low), highEnd(high)]);
  rows.push(["all or any but those to keep", lowEnd(e.keeping[0]), highEnd(e.keeping[1])]);
  const exact = e.model.two ? "Exact." : "Bounds: the truth lies between them.";
  const name = foreign(oneLine(e.model.classes[e.label].name, 30));
  return [
    line("soft", "Probability of ", name, ` after deleting whichever tokens. ${exact}`),
    tableOf(["deleted", "least", "greatest"], rows),
  ];
}
