"""What is done while the kill comes, and what must hold afterwards. A new phase is a new entry of PHASES.

An act runs in a forked process, so all of it is real: the command, its files, and the SIGKILL that ends it.
"""

import http.client
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import keytokens as kt
import keytokens.estimators.streaming
from keytokens.app.cli.app import run
from keytokens.app.serve.models import take_in
from keytokens.app.serve.store import Store
from keytokens.io import write_table

from ..corpus import reviews

ASKED = ["great dull film", "not awful", "the plot of it", ""]
LEFT = re.compile(r"((numbers|words|scores)-[0-9a-f]{16}\.[a-z.]+|\.[a-z]+\.[a-z]+\.[0-9a-f]{12}\.tmp)\Z")


ROUND = "round"  # a file that says that an endless act has been round once


class Broken(AssertionError):
    """A promise does not hold."""


@dataclass
class Known:
    """What there is before, and what there will be: made once, compared to the bit."""

    folder: Path
    data: dict[str, Path] = field(default_factory=dict)
    model: dict[str, Any] = field(default_factory=dict)
    answers: dict[str, str] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)

    @classmethod
    def make(cls, folder: Path) -> "Known":
        known = cls(folder)
        for name, seed in (("old", 1), ("new", 2)):
            texts, labels = reviews(60, seed=seed)
            known.data[name] = folder / f"{name}.csv"
            write_table(str(known.data[name]), {"text": texts, "label": labels})
            known.model[name] = kt.KeyTokenClassifier(random_state=0, threads=1).fit(texts, labels)
        known.model["small"] = known.model["new"].compressed(20_000)
        for name, model in known.model.items():
            known.answers[name] = answers_of(model)
            model.save(folder / f"model-{name}")
        for phase in PHASES.values():
            if phase.target:
                inside = folder / "done" / phase.name
                inside.mkdir(parents=True)
                phase.prepare(inside, known)
                phase.act(inside, known)
                known.files[phase.name] = (inside / phase.target).read_bytes()
        return known

    def which(self, model: Any) -> str:
        """Which of the known models this is."""
        answers = answers_of(model)
        for name, expected in self.answers.items():
            if answers == expected:
                return name
        raise Broken("a model that nobody saved was loaded")


def answers_of(model: Any) -> str:
    return repr((model.classes_.tolist(), model.predict_proba(ASKED).tolist(), model.vocabulary_.tokens))


@dataclass(frozen=True)
class Phase:
    """`act` is killed; `check` says what was found (old, new, none) or raises."""

    name: str
    says: str
    prepare: Callable[[Path, Known], None]
    act: Callable[[Path, Known], None]
    check: Callable[[Path, Known], str]
    target: str = ""  # a file that the act writes, the same each time
    endless: bool = False  # the act goes round for ever, and says when it has been round once
    actors: int = 1
    weight: float = 1.0  # of all kills


def command(*words: object) -> None:
    """A command of keytokens, with its exit code and without its words."""
    with redirect_stdout(io.StringIO()):
        code = run([str(word) for word in words])
    if code:
        raise Broken(f"{words[0]} ended with {code}")


# ---- models


def nothing(folder: Path, known: Known) -> None:
    folder.mkdir(exist_ok=True)


def old_model(folder: Path, known: Known) -> None:
    known.model["old"].save(folder / "model")


def fit(folder: Path, known: Known) -> None:
    command("fit", known.data["new"], "-o", folder / "model", "--threads", "1")


def fit_small(folder: Path, known: Known) -> None:
    command("fit", known.data["new"], "-o", folder / "model", "--threads", "1", "--size", "20kB", "--holdout", "0")


def save_for_ever(folder: Path, known: Known) -> None:
    while True:
        for name in ("new", "small", "old"):
            known.model[name].save(folder / "model")
        (folder / ROUND).touch()


def one_model(*may_be: str) -> Callable[[Path, Known], str]:
    """The model is one of these, what is left over does no harm, and a new one can be saved over all of it."""

    def check(folder: Path, known: Known) -> str:
        place = folder / "model"
        found = _loaded(place, known)
        if found not in may_be:
            raise Broken(f"the model is {found!r}, not one of {may_be}")
        named = _named(place)
        left = [file.name for file in place.iterdir() if file.name not in named] if place.is_dir() else []
        strange = [name for name in left if not LEFT.match(name)]
        if strange:
            raise Broken(f"strange files: {strange}")
        known.model["old"].save(place)
        if _loaded(place, known) != "old":
            raise Broken("after the kill a model could not be saved")
        if {file.name for file in place.iterdir()} != _named(place):
            raise Broken("after the kill and a save there is more than one model")
        return found + (" with leftovers" if left else "")

    return check


def _loaded(place: Path, known: Known) -> str:
    if not (place / "model.json").exists():
        return "none"
    return known.which(kt.load(place))


def _named(place: Path) -> set[str]:
    with suppress(FileNotFoundError):
        record = json.loads((place / "model.json").read_bytes())
        return {"model.json", *(entry["name"] for entry in record["files"].values())}
    return set()


def fit_flowing(folder: Path, known: Known) -> None:
    """A fit from files that saves its state at every step, and goes on where an earlier one was killed."""
    keytokens.estimators.streaming._EVERY = 0.0
    words = ["--threads", "1", "--memory", "1GB", "--resume"]
    command("fit", known.data["new"], "-o", folder / "model", *words)


def goes_on(folder: Path, known: Known) -> str:
    """The old model or the new one is there, and the same command ends as if nothing had happened."""
    found = _loaded(folder / "model", known)
    if found not in ("old", "new"):
        raise Broken(f"the model is {found!r}")
    partial = folder / "model.partial"
    stage = "trained" if list(partial.glob("all/state.safetensors")) else "counted" if partial.exists() else "begun"
    fit_flowing(folder, known)
    after = _loaded(folder / "model", known)
    if after != "new":
        raise Broken(f"the run that went on ended with the {after!r} model")
    if partial.exists():
        raise Broken(f"left over: {sorted(map(str, partial.rglob('*')))}")
    return found if found == "new" else f"old, {stage}"


# ---- files that take the place of others


def predict(folder: Path, known: Known) -> None:
    command("predict", known.folder / "model-new", known.data["old"], "-o", folder / "out.csv.gz", "--threads", "1")


def report(folder: Path, known: Known) -> None:
    command("report", known.folder / "model-new", known.data["old"], "-o", folder / "report.html", "--threads", "1")


def explain(folder: Path, known: Known) -> None:
    command("explain", known.folder / "model-new", "a great plot, not dull", "--html", folder / "why.html")


def old_file(name: str) -> Callable[[Path, Known], None]:
    return lambda folder, known: (folder / name).write_bytes(b"old") and None  # type: ignore[func-returns-value]


def whole_file(phase: str, name: str) -> Callable[[Path, Known], str]:
    def check(folder: Path, known: Known) -> str:
        content = (folder / name).read_bytes()
        left = [file.name for file in folder.iterdir() if file.name != name]
        if any(not file.startswith(f".{name}.") for file in left):
            raise Broken(f"strange files: {left}")
        if content not in (b"old", known.files[phase]):
            raise Broken(f"{name} is neither the old nor the new one: {len(content)} bytes")
        return ("old" if content == b"old" else "new") + (" with leftovers" if left else "")

    return check


# ---- the server's store


def old_store(folder: Path, known: Known) -> None:
    store = Store(folder / "store")
    take_in(store, known.folder / "model-old")
    store.close()


def take_in_and_remove(folder: Path, known: Known) -> None:
    store = Store(folder / "store")
    while True:
        for name in ("new", "old"):
            id = take_in(store, known.folder / f"model-{name}")
            for record in store.models():
                if record["id"] != id:
                    store.remove_model(record["id"])
        (folder / ROUND).touch()


def one_store(folder: Path, known: Known) -> str:
    """The next server finds whole models only, all of them listed, and sweeps the rest away."""
    store = Store(folder / "store")
    try:
        listed = {record["id"] for record in store.models()}
        inside = {file.name for file in (folder / "store" / "models").iterdir()}
        if listed != inside:
            raise Broken(f"listed {sorted(listed)}, there are {sorted(inside)}")
        found = sorted(known.which(kt.load(store.model_folder(id) / "model")) for id in listed)
        for id in listed:
            parts = {file.name for file in store.model_folder(id).iterdir()}
            if not {"model", "facts.json", "model.bin"} <= parts:
                raise Broken(f"half a model: {sorted(parts)}")
        files = {file.name for file in (folder / "store" / "uploads").iterdir()}
        if files != {store.upload_file(record["id"]).name for record in store.uploads()}:
            raise Broken(f"uploads that nobody knows: {sorted(files)}")
        if any(run["state"] in ("queued", "running") for run in store.runs()):
            raise Broken("a training goes on that has no process")
        return "+".join(found) or "none"
    finally:
        store.close()


def not_empty(folder: Path, known: Known) -> str:
    """One model goes only after another has come: there is always one."""
    found = one_store(folder, known)
    if found == "none":
        raise Broken("all models are gone")
    return found


def serve(folder: Path, known: Known) -> None:
    """A server in a session of its own, and a client that uploads and trains, again and again."""
    os.setsid()
    code = "import sys; from keytokens.app.cli import main; main(sys.argv[1:])"
    words = [sys.executable, "-c", code, "serve", "--port", "0", "--store", str(folder / "store")]
    server = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    (folder / "server.pid").write_text(str(server.pid))
    assert server.stdout is not None
    port = int(server.stdout.readline().split()[3].rstrip("/").rpartition(":")[2])
    (folder / "ready").touch()
    with suppress(OSError, http.client.HTTPException):
        while True:
            upload = _ask(port, "POST", "/api/uploads?name=r.csv", known.data["new"].read_bytes())["id"]
            options = {"upload": upload, "options": {"ngrams": 3}}
            run_id = _ask(port, "POST", "/api/runs", json.dumps(options).encode())["id"]
            while _ask(port, "GET", f"/api/runs/{run_id}")["state"] in ("queued", "running"):
                time.sleep(0.01)
            (folder / ROUND).touch()
    server.wait()


def _ask(port: int, method: str, path: str, body: bytes | None = None) -> Any:
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        link.request(method, path, body, {"content-type": "application/json"})
        return json.loads(link.getresponse().read())
    finally:
        link.close()


def serve_killed(folder: Path, known: Known) -> str:
    """The server was killed: its trainings must end by themselves, and what they had half done goes."""
    pid = int((folder / "server.pid").read_text())
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    end = time.monotonic() + 30
    while _is_alive_below(folder):
        if time.monotonic() > end:
            raise Broken("a training goes on without its server")
        time.sleep(0.02)
    found = one_store(folder, known)
    if "old" not in found.split("+"):
        raise Broken(f"the model that was there is gone: {found}")
    return "old" if found == "old" else "new"


def _is_alive_below(folder: Path) -> bool:
    """Whether a process has the store open or builds in it: its command or its files name the folder."""
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            with suppress(OSError):
                if any(str(folder) in os.readlink(link) for link in (process / "fd").iterdir()):
                    return True
    return False


PHASES = {
    phase.name: phase
    for phase in [
        Phase("fit", "no model or the whole new one", nothing, fit, one_model("none", "new"), weight=2),
        Phase("fit-over", "the old or the new model", old_model, fit, one_model("old", "new"), weight=2),
        Phase("fit-small", "the old or the new model, other format", old_model, fit_small, one_model("old", "small")),
        Phase("resume", "old or new model; going on ends with the new", old_model, fit_flowing, goes_on, weight=2),
        Phase("save", "one of the models that are saved", old_model, save_for_ever, one_model("old", "new", "small"),
              endless=True, weight=4),
        Phase("two-writers", "the model of one writer", old_model, save_for_ever, one_model("old", "new", "small"),
              endless=True, actors=2, weight=2),
        Phase("predict", "the old table or the new one", old_file("out.csv.gz"), predict,
              whole_file("predict", "out.csv.gz"), target="out.csv.gz"),
        Phase("explain", "the old page or the new one", old_file("why.html"), explain,
              whole_file("explain", "why.html"), target="why.html"),
        Phase("report", "the old page or the new one", old_file("report.html"), report,
              whole_file("report", "report.html"), target="report.html"),
        Phase("store", "whole models, at least one", old_store, take_in_and_remove, not_empty, endless=True, weight=2),
        Phase("serve", "whole models, the old one too", old_store, serve, serve_killed, endless=True, weight=0.5),
    ]
}  # fmt: skip
