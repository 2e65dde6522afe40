// Models and trainings of this server. Text only ever enters through text nodes.

const $ = (id) => document.getElementById(id);

function h(name, attributes, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (typeof value === "function") element.addEventListener(key, value);
    else if (value !== null && value !== false) element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** A name from outside, whichever way it is written; control characters that turn the rest of a line around stay inside. */
const foreign = (text) => h("bdi", { lang: "" }, String(text));
const whole = (number) => number.toLocaleString("en");
const percent = (share) => `${(100 * share).toFixed(2)} %`;

async function ask(path, options) {
  const answer = await fetch(path, options);
  if (answer.status === 204) return null;
  const body = await answer.json().catch(() => ({ error: `the server answered ${answer.status}.` }));
  if (!answer.ok) throw new Error(body.error || `the server answered ${answer.status}.`);
  return body;
}

const send = (path, body) =>
  ask(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });

function problem(error) {
  $("problem").hidden = !error;
  $("problem").textContent = error ? error.message : "";
}

async function attempt(work) {
  problem(null);
  try {
    return await work();
  } catch (error) {
    problem(error);
    return undefined;
  }
}

// --- models

async function showModels() {
  const { models } = await ask("/api/models");
  if (!models.length) {
    $("model-list").replaceChildren(h("p", { class: "soft" }, "None yet. Upload labelled text below and train one."));
    return;
  }
  const head = ["Name", "Classes", "Texts", "Tokens", "Accuracy on held-out texts", "Trained", ""];
  $("model-list").replaceChildren(
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Models" },
      h("table", null,
        h("thead", null, h("tr", null, head.map((name, i) => h("th", { scope: "col", class: i >= 2 && i <= 4 ? "num" : null }, name)))),
        h("tbody", null, models.map(modelRow)))),
  );
}

function modelRow(model) {
  const place = `/models/${model.id}`;
  const remove = h("button", {
    type: "button", class: "link", "aria-label": `Delete ${model.name}`,
    click: () => attempt(async () => {
      if (!confirm(`Delete the model "${model.name}"?`)) return;
      await ask(`/api/models/${model.id}`, { method: "DELETE" });
      await showModels();
    }),
  }, "Delete");
  return h("tr", null,
    h("th", { scope: "row" }, h("a", { href: place }, foreign(model.name))),
    h("td", null, foreign(model.classes.slice(0, 4).join(", ") + (model.classes.length > 4 ? " …" : ""))),
    h("td", { class: "num" }, model.texts === null ? "–" : whole(model.texts)),
    h("td", { class: "num" }, whole(model.tokens)),
    h("td", { class: "num" }, model.score ? percent(model.score.accuracy) : "–"),
    h("td", null, new Date(1000 * model.created).toLocaleString()),
    h("td", null,
      h("a", { href: `${place}/report.html`, download: "report.html" }, "Report"),
      h("a", { href: `/api/models/${model.id}/download`, download: "model.zip" }, "Model"),
      remove));
}

// --- uploads

let uploaded = null;

$("upload-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const file = $("file").files[0];
  if (file) attempt(() => upload(file));
});

async function upload(file) {
  $("upload-bar").hidden = false;
  try {
    uploaded = await sendFile(file);
  } finally {
    $("upload-bar").hidden = true;
  }
  const { columns, preview, rows, text, label } = uploaded;
  for (const [id, guess, other] of [["text-column", text, 0], ["label-column", label, 1]]) {
    const chosen = guess === null ? columns[Math.min(other, columns.length - 1)] : guess;
    $(id).replaceChildren(...columns.map((name) => h("option", { value: name, selected: name === chosen }, name)));
  }
  $("model-name").value = file.name;
  $("preview").replaceChildren(
    h("table", null,
      h("caption", null, `The first of ${whole(rows)} rows`),
      h("thead", null, h("tr", null, columns.map((name) => h("th", { scope: "col" }, foreign(name))))),
      h("tbody", null, preview.map((row) => h("tr", null, row.map((cell) => h("td", null, foreign(cell))))))),
  );
  $("train-form").hidden = false;
  $("text-column").focus();
}

/** XMLHttpRequest, because fetch does not tell how much has been sent. */
function sendFile(file) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", `/api/uploads?name=${encodeURIComponent(file.name)}`);
    request.responseType = "json";
    request.upload.onprogress = ({ loaded, total }) => { $("upload-bar").value = total ? loaded / total : 0; };
    request.onload = () => {
      if (request.status === 201) resolve(request.response);
      else reject(new Error(request.response?.error || `the server answered ${request.status}.`));
    };
    request.onerror = () => reject(new Error("the server cannot be reached."));
    request.send(file);
  });
}

// --- trainings

$("train-form").addEventListener("submit", (event) => {
  event.preventDefault();
  attempt(async () => {
    const run = await send("/api/runs", {
      upload: uploaded.id,
      text: $("text-column").value,
      label: $("label-column").value,
      title: $("model-name").value,
      options: { ngrams: Number($("ngrams").value), counts: $("counts").value, balanced: $("balanced").checked },
    });
    follow(run);
  });
});

const STAGES = { queued: "waiting", reading: "reading the file", scoring: "scoring on held-out texts", training: "training on all texts", writing: "writing the model" };

function follow(run) {
  const says = h("p", null, "");
  const bar = h("progress", { max: "1", "aria-label": "Training" });
  const cancel = h("button", { type: "button", click: () => attempt(() => send(`/api/runs/${run.id}/cancel`, {})) }, "Cancel");
  const row = h("div", { class: "run", "data-run": run.id }, h("p", null, foreign(run.spec.title || "a model")), bar, says, cancel);
  $("run-list").prepend(row);
  const events = new EventSource(`/api/runs/${run.id}/events`);
  events.onmessage = ({ data }) => {
    const record = JSON.parse(data);
    const { stage, step, of } = record.progress || { stage: record.state };
    if (step && of) bar.value = Math.min(1, step / of);
    else bar.removeAttribute("value");
    says.textContent = (STAGES[stage] || stage) + (step ? `, step ${step}` : "");
    if (!["queued", "running"].includes(record.state)) {
      events.close();
      bar.remove();
      cancel.remove();
      ended(record, says);
    }
  };
}

function ended(record, says) {
  if (record.state === "done") {
    says.replaceChildren("done: ", h("a", { href: `/models/${record.model}` }, "look at it"));
    attempt(showModels);
  } else {
    says.textContent = record.message ? `${record.state}: ${record.message}` : record.state;
  }
}

async function showRuns() {
  const { runs } = await ask("/api/runs");
  runs.filter((run) => ["queued", "running"].includes(run.state)).reverse().forEach(follow);
}

// --- theme

const THEMES = ["as the system", "light", "dark"];
let theme = 0;
$("theme").addEventListener("click", () => {
  theme = (theme + 1) % THEMES.length;
  if (theme) document.documentElement.dataset.theme = THEMES[theme];
  else delete document.documentElement.dataset.theme;
  $("theme").textContent = `Theme: ${THEMES[theme]}`;
});

await Promise.all([attempt(showModels), attempt(showRuns)]);
document.documentElement.dataset.ready = "";
