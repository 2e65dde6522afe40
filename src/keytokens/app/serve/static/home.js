// Models and trainings of this server. Text only ever enters through text nodes.

const $ = (id) => document.getElementById(id);

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
  const head = ["model", "right on texts it had never seen", "classes", "texts", "tokens", "trained", ""];
  const none = h("p", { class: "soft" }, "None yet. Drop a table above and train one.");
  replace($("model-list"), models.length ? scrolling("Models", tableOf(head, models.map(modelRow))) : none);
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
  const { score, classes, trained, created } = model;
  const names = classes.slice(0, 4).map((name, i) => [i ? ", " : "", foreign(oneLine(String(name), 40))]);
  return [
    h("a", { href: place }, foreign(model.name)),
    score && score.n && score.kind !== "seen in training" ? `${percent(score.accuracy)} of ${whole(score.n)}, ${score.kind}` : "no score",
    [whole(classes.length), ": ", names, classes.length > 4 ? " …" : ""],
    model.texts === null ? "–" : whole(model.texts),
    whole(model.tokens),
    new Date(trained ? `${trained}T12:00` : 1000 * created).toLocaleDateString("en-GB", { dateStyle: "medium" }),
    h("span", { class: "actions" },
      h("a", { href: `${place}/report.html`, download: "report.html" }, "Report"),
      h("a", { href: `/api/models/${model.id}/download`, download: "model.zip" }, "Model"),
      remove),
  ];
}

// --- uploads

let uploaded = null;

$("file").addEventListener("change", () => take($("file").files[0]));
for (const [name, over] of [["dragenter", true], ["dragover", true], ["dragleave", false], ["drop", false]]) {
  addEventListener(name, (event) => {
    event.preventDefault();
    $("drop").classList.toggle("over", over);
  });
}
addEventListener("drop", (event) => take(event.dataTransfer.files[0]));
$("label-column").addEventListener("change", showClasses);
$("text-column").addEventListener("change", showClasses);

function take(file) {
  if (file) attempt(() => upload(file));
}

async function upload(file) {
  $("upload-bar").hidden = false;
  try {
    uploaded = await sendFile(file);
  } finally {
    $("upload-bar").hidden = true;
    $("file").value = "";
  }
  const { columns, preview, rows, holds, text, label } = uploaded;
  for (const [id, guess, other] of [["text-column", text, 0], ["label-column", label, 1]]) {
    const chosen = guess === null ? columns[Math.min(other, columns.length - 1)] : guess;
    replace($(id), columns.map((name) => h("option", { value: name, selected: name === chosen }, name)));
  }
  $("model-name").value = file.name;
  replace($("uploaded"), foreign(oneLine(file.name)), `: ${several(rows, "row")}, ${several(columns.length, "column")}`);
  const contents = columns.map((name, i) => [
    foreign(oneLine(name)),
    says(holds[i], rows),
    foreign(preview.length ? oneLine(preview[0][i], 80) : ""),
  ]);
  replace($("preview"), scrolling("Columns of the file", tableOf(["column", "holds", "first row"], contents, "columns")));
  $("train-form").hidden = false;
  showClasses();
  $("text-column").focus();
}

/** What a column holds, in a line. */
function says({ distinct, length }, rows) {
  const values = distinct === rows && rows > 1 ? `${several(rows, "value")}, all different` : several(distinct, "different value");
  return `${values}, of ${several(Math.round(length), "character")} on average`;
}

/** How often each label occurs, and why a column cannot be learned. */
function showClasses() {
  const at = uploaded.columns.indexOf($("label-column").value);
  const { distinct, common } = uploaded.holds[at];
  const { rows } = uploaded;
  let reason = null;
  if (at === uploaded.columns.indexOf($("text-column").value)) reason = "Text and label must be two columns.";
  else if (distinct === rows && rows > 1) reason = "All labels are different: nothing can be learned from them. Choose another column.";
  else if (distinct < 2) reason = "All labels are the same: there is nothing to tell apart. Choose another column.";
  $("start").disabled = reason !== null;
  const most = Math.max(1, ...common.map(([, times]) => times));
  const list = common.map(([name, times]) => h("li", null, foreign(oneLine(name, 30)), bar(times / most, "k"), h("span", { class: "num" }, whole(times))));
  const more = distinct > common.length ? h("p", { class: "soft" }, `and ${several(distinct - common.length, "other class", "other classes")}`) : null;
  replace(
    $("classes"),
    h("h3", null, reason ? "This cannot be trained" : `${several(distinct, "class", "classes")} to learn`),
    reason ? h("p", { class: "wrong" }, `✗ ${reason}`) : [h("ul", { class: "counts" }, list), more],
  );
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
    follow(run, true);
  });
});

const STAGES = { queued: "waiting", reading: "reading the file", scoring: "scoring, by models that have not seen the texts", training: "training on all texts", writing: "writing the model" };

/** Shows how a training goes on; one that was started here ends at its model. */
function follow(run, here = false) {
  const said = h("p", null, "");
  const progress = h("progress", { max: "1", "aria-label": "Training" });
  const cancel = button("Cancel", () => attempt(() => send(`/api/runs/${run.id}/cancel`, {})));
  const row = h("div", { class: "run", "data-run": run.id }, h("p", null, foreign(run.spec.title || "a model")), progress, said, cancel);
  $("run-list").prepend(row);
  const events = new EventSource(`/api/runs/${run.id}/events`);
  events.onmessage = ({ data }) => {
    const record = JSON.parse(data);
    const { stage, step, of } = record.progress || { stage: record.state };
    if (step && of) progress.value = Math.min(1, step / of);
    else progress.removeAttribute("value");
    said.textContent = (STAGES[stage] || stage) + (step ? `, step ${step}` : "");
    if (!["queued", "running"].includes(record.state)) {
      events.close();
      progress.remove();
      cancel.remove();
      ended(record, said, here);
    }
  };
}

function ended(record, said, here) {
  if (record.state === "done") {
    replace(said, "done: ", h("a", { href: `/models/${record.model}` }, "look at it"));
    if (here) location.href = `/models/${record.model}`;
    else attempt(showModels);
  } else {
    said.textContent = record.message ? `${record.state}: ${record.message}` : record.state;
  }
}

async function showRuns() {
  const { runs } = await ask("/api/runs");
  for (const run of runs.filter((run) => ["queued", "running"].includes(run.state)).reverse()) follow(run);
}

themeButton();
await Promise.all([attempt(showModels), attempt(showRuns)]);
document.documentElement.dataset.ready = "";
