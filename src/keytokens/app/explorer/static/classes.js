// Where the model fails: a table of the classes, weakest first, and the matrix of given against said labels.

import { addressOf } from "./address.js";
import { bar, foreign, h, line, scrolling, tableOf } from "./dom.js";
import { oneLine, percent, several, whole } from "./format.js";

const HEAT = 13; // classes from which the matrix has shades without numbers
const SHADES = 8;

const short = (name) => foreign(oneLine(name, 24));
const to = (state, content, label = null) => h("a", { href: addressOf("errors", state), "aria-label": label }, content);

export function weakestFirst({ names, classes, known, uncovered }) {
  const used = names.map((_, k) => k).filter((k) => classes[k] && (classes[k].texts > 0 || classes[k].said > 0));
  const weakness = (k) => (k < known ? (classes[k].recall ?? 2) : 3);
  used.sort((i, j) => weakness(i) - weakness(j) || classes[j].texts - classes[i].texts);
  const rows = used.map((k) => {
    const { texts, recall, precision, f1, mistaken } = classes[k];
    const name = names[k];
    const open = !uncovered.includes(k);
    const share = (value, state) =>
      value === null || !open ? "–" : [to({ ...state, show: "wrong" }, percent(value)), bar(value, "k")];
    return [
      to({ given: name }, short(name), `${name}: its texts`),
      to({ given: name }, whole(texts)),
      share(recall, { given: name }),
      share(precision, { said: name }),
      f1 === null || !open ? "–" : f1.toFixed(2),
      mistaken
        ? to({ given: name, said: names[mistaken[0]] }, [
            short(names[mistaken[0]]),
            " ",
            h("b", null, whole(mistaken[1])),
          ])
        : "–",
    ];
  });
  const head = ["class", "texts", "found (recall)", "right when said (precision)", "F1", "most often mistaken for"];
  return [
    h("h2", null, "Where it fails"),
    line("sub", "Weakest class first. Every number leads to its texts."),
    scrolling("Classes, weakest first", tableOf(head, rows, "classes-table")),
  ];
}

export function confusionMatrix({ names, known, confusions }) {
  const counts = new Map(confusions.map(([given, said, texts]) => [given * names.length + said, texts]));
  const of = (given, said) => counts.get(given * names.length + said) ?? 0;
  const rows = names.map((_, k) => k).filter((k) => k < known || confusions.some(([given]) => given === k));
  const columns = rows.filter((k) => k < known);
  const heat = rows.length >= HEAT;
  const most = Math.max(1, ...confusions.filter(([given, said]) => given !== said).map(([, , texts]) => texts));
  const cell = (given, said) => {
    const texts = of(given, said);
    const hit = given === said;
    const shade = hit || !texts ? 0 : Math.max(1, Math.ceil((SHADES * texts) / most));
    const label = `given ${names[given]}, said ${names[said]}: ${several(texts, "text")}`;
    const link = texts ? to({ given: names[given], said: names[said] }, heat ? "" : whole(texts), label) : null;
    if (link) Object.assign(link, { tabIndex: -1, title: oneLine(label, 120) });
    return h("td", { class: `${hit ? "hit" : ""} ${shade ? `k${shade}` : ""}` }, link);
  };
  const table = h(
    "table",
    { class: heat ? "matrix heat" : "matrix", keydown: walk },
    h(
      "thead",
      null,
      h(
        "tr",
        null,
        h("td"),
        columns.map((k) => h("th", { scope: "col" }, h("span", null, short(names[k])))),
      ),
    ),
    h(
      "tbody",
      null,
      rows.map((given) =>
        h(
          "tr",
          null,
          h("th", { scope: "row" }, short(names[given])),
          columns.map((said) => cell(given, said)),
        ),
      ),
    ),
  );
  const first = table.querySelector("td a");
  if (first) first.tabIndex = 0;
  return [
    h("h2", null, "Given against said"),
    line("sub", "Rows: the given label. Columns: what it said. Framed: right. Darker: more mistakes."),
    scrolling("Given against said labels", table),
  ];
}

/** Arrow keys walk over the cells that lead somewhere; one of them is in the order of the tab key. */
function walk(event) {
  const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
  const step = steps[event.key];
  const here = event.target.closest("td");
  if (!step || !here) return;
  event.preventDefault();
  const body = here.closest("tbody");
  let row = here.parentElement.rowIndex - 1;
  let column = here.cellIndex;
  for (;;) {
    [row, column] = [row + step[0], column + step[1]];
    const link = body.rows[row]?.cells[column]?.querySelector("a");
    if (!body.rows[row] || column < 1 || column >= body.rows[row].cells.length) return;
    if (!link) continue;
    event.target.tabIndex = -1;
    link.tabIndex = 0;
    link.focus();
    return;
  }
}
