// What the model is and how it was trained; the numbers of the training are folded away.

import { axes, chart, ticksUpTo } from "./charts.js";
import { folded, foreign, h, line, svg, tableOf } from "./dom.js";
import { oneLine, several, signed, whole } from "./format.js";

export function aboutModel(model, overview) {
  const { order } = model.facts;
  const about = overview?.about ?? {};
  const { texts, trained, seconds } = about;
  const words = order === 1 ? "of one word" : `of 1 to ${order} words`;
  const when = trained
    ? ` on ${new Date(`${trained}T12:00:00`).toLocaleDateString("en-GB", { day: "numeric", month: "long", year: "numeric" })}`
    : "";
  const how = seconds ? `trained in ${seconds < 10 ? seconds.toFixed(1) : whole(Math.round(seconds))} s` : "trained";
  const facts = [
    texts ? several(texts, "text of training", "texts of training") : null,
    several(model.classes.length, "class", "classes"),
    `${several(overview?.tokens_of ?? model.size, "token")} ${words}`,
    when || seconds ? how + when : null,
  ];
  return [
    h("h2", null, "About this model"),
    line("sub", `${facts.filter(Boolean).join(", ")}.`),
    folded("Training and options", () => [...parameters(model, about), training(model)]),
  ];
}

function parameters({ facts, logSink }, { columns, calibrated, temperature }) {
  const rows = [
    ["repeated tokens count", facts.weighting.name],
    ["logit of the sink", logSink === -Infinity ? "no sink" : signed(logSink)],
    calibrated
      ? ["probabilities are calibrated", temperature ? `temperature ${temperature.toPrecision(3)}` : "yes"]
      : null,
    ...Object.entries(columns ?? {}).map(([use, name]) => [`column with the ${use}`, foreign(oneLine(name))]),
    ...Object.entries(facts.options).map(([name, value]) => [name, oneLine(String(value))]),
    ["written by keytokens", facts.version],
  ];
  return [tableOf(["option", "value"], rows.filter(Boolean), "options")];
}

function training(model) {
  const { history, status } = model.facts;
  if (!history.length) return line("soft", "The model carries no training curve.");
  const low = Math.min(...history);
  const high = Math.max(...history);
  const span = high - low || 1;
  const at = (i) => (history.length > 1 ? i / (history.length - 1) : 0.5);
  const draw = (frame) => {
    const { x, y } = frame;
    const steps = ticksUpTo(history.length - 1 || 1).filter(([share, name]) => share <= 1 && !name.includes("."));
    const path = history.map((v, i) => `${i ? "L" : "M"}${x(at(i))} ${y((v - low) / span)}`).join("");
    return [axes(frame, steps, ticksUpTo(high, low), "step", "objective"), svg("path", { class: "curve", d: path })];
  };
  return chart({
    title: "Training curve",
    says: `The objective from the start to step ${history.length - 1}. ${status}`,
    label: `Training curve: the objective falls from ${high.toPrecision(5)} to ${low.toPrecision(5)}`,
    draw,
    table: {
      name: "The numbers",
      head: ["step", "objective"],
      rows: history.map((v, i) => [String(i), v.toPrecision(8)]),
    },
  });
}
