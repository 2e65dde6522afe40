// The page: reads its data, shows one view at a time, and offers the model to the console as `keytokens`.

import { DocumentsView, documentsOf } from "./documents.js";
import { announce, h, replace } from "./dom.js";
import { Explanation } from "./explain.js";
import { Model } from "./model.js";
import { showOverview } from "./overview.js";
import { sourceOf } from "./source.js";
import { TryView } from "./tryit.js";
import { VocabularyView } from "./vocabulary.js";
import { weightingOf } from "./weighting.js";
import { MASK, readWords } from "./words.js";

const VIEWS = ["overview", "vocabulary", "documents", "try"];
const THEMES = { auto: "Theme: as the system", light: "Theme: light", dark: "Theme: dark" };
const page = { views: {} };

async function start() {
  const load = sourceOf(document);
  const [overview, model, documents] = await Promise.all([load("overview"), load("model"), load("documents")]);
  page.overview = overview && overview.facts;
  page.model = new Model(model);
  page.documents = documentsOf(documents);
  document.getElementById("title").textContent = page.overview?.title || document.title;
  document.getElementById("loading").remove();
  addEventListener("hashchange", () => route(true));
  route(false);
  window.keytokens = publicFace();
  document.documentElement.dataset.ready = "true";
  performance.mark("keytokens-ready");
}

/** What tests and curious people use from the console. */
function publicFace() {
  const { model, overview, documents, views } = page;
  return {
    model,
    overview,
    documents,
    views,
    explain: (text, hidden = null) => new Explanation(model, text, hidden && new Set(hidden)),
    weightingOf,
    words: (text) => readWords(text, model.table).map(({ form }) => form ?? MASK),
  };
}

const makers = {
  overview: (room) => showOverview(room, page.overview, page.model),
  vocabulary: (room) =>
    new VocabularyView(room, page.model, page.documents, (one) => {
      location.hash = "documents";
      show("documents", true);
      page.views.documents.reveal(one);
    }),
  documents: (room) => {
    if (page.documents) return new DocumentsView(room, page.model, page.documents, tryText);
    replace(room, h("h2", null, "Documents"), h("p", null, "No texts were given."));
    return null;
  },
  try: (room) => new TryView(room, page.model, sample()),
};

function sample() {
  const short = page.documents?.rows.find(({ text }) => text.length > 40 && text.length < 700);
  return short ? short.text : "";
}

function tryText(text) {
  location.hash = "try";
  show("try", true);
  page.views.try.set(text);
}

function route(moveFocus) {
  const wanted = location.hash.slice(1);
  show(VIEWS.includes(wanted) ? wanted : page.shown || VIEWS[0], moveFocus);
}

/** A view is made when it is first shown. */
function show(name, moveFocus) {
  for (const other of VIEWS) {
    document.getElementById(`view-${other}`).hidden = other !== name;
    const link = document.querySelector(`nav a[href="#${other}"]`);
    if (other === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const room = document.getElementById(`view-${name}`);
  if (!(name in page.views)) page.views[name] = makers[name](room);
  if (moveFocus && page.shown !== name) {
    room.querySelector("h2").tabIndex = -1;
    room.querySelector("h2").focus({ preventScroll: true });
    scrollTo(0, 0);
  }
  page.shown = name;
}

function switchTheme(event) {
  const names = Object.keys(THEMES);
  const root = document.documentElement;
  const next = names[(names.indexOf(root.dataset.theme || "auto") + 1) % names.length];
  root.dataset.theme = next;
  event.currentTarget.textContent = THEMES[next];
  page.views.vocabulary?.map.redraw();
}

document.getElementById("theme").addEventListener("click", switchTheme);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => page.views.vocabulary?.map.redraw());
start().catch((error) => {
  const loading = document.getElementById("loading");
  const old =
    typeof DecompressionStream === "undefined"
      ? " This browser is too old for this page: it needs one of 2024 or later."
      : "";
  if (loading) loading.textContent = `The page could not be read: ${error.message}.${old}`;
  announce("The page could not be read.");
  throw error;
});
