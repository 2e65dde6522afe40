// The page: reads its data, shows one view at a time, and offers the model to the console as `keytokens`.

import { readAddress } from "./address.js";
import { announce } from "./dom.js";
import { ErrorsView, documentsOf } from "./errors.js";
import { Explanation } from "./explain.js";
import { Model } from "./model.js";
import { sourceOf } from "./source.js";
import { SummaryView } from "./summary.js";
import { themeButton } from "./theme.js";
import { TryView } from "./tryit.js";
import { VocabularyView } from "./vocabulary.js";
import { weightingOf } from "./weighting.js";
import { MASK, readWords } from "./words.js";

const VIEWS = { summary: SummaryView, errors: ErrorsView, words: VocabularyView, try: TryView };
const page = { views: {}, open };

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
  return {
    ...page,
    explain: (text, hidden = null) => new Explanation(page.model, text, hidden && new Set(hidden)),
    weightingOf,
    words: (text) => readWords(text, page.model.table).map(({ form }) => form ?? MASK),
  };
}

/** Opens a view on something that an address may be too short for. */
function open(view, state) {
  history.pushState(null, "", `#${view}`);
  show(view, state, true);
}

function route(moveFocus) {
  const { view, state } = readAddress(location.hash);
  if (view in VIEWS) show(view, state, moveFocus);
  else if (!page.shown || location.hash === "") show("summary", {}, moveFocus);
}

/** A view is made when it is first shown. */
function show(name, state, moveFocus) {
  for (const other of Object.keys(VIEWS)) {
    document.getElementById(`view-${other}`).hidden = other !== name;
    const link = document.querySelector(`nav a[data-view="${other}"]`);
    if (other === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const room = document.getElementById(`view-${name}`);
  page.views[name] ??= new VIEWS[name](room, page);
  page.views[name].show(state);
  if (moveFocus && page.shown !== name) {
    room.querySelector("h1").tabIndex = -1;
    room.querySelector("h1").focus({ preventScroll: true });
    scrollTo(0, 0);
  }
  page.shown = name;
}

themeButton(() => page.views.words?.map.redraw());
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
