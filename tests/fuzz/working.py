"""The folder of a fit that was interrupted (`fit --memory --resume`), damaged: the same bits, or one clear refusal."""

import contextlib
import json
import os
import shutil
from pathlib import Path
from random import Random
from typing import Any

import keytokens as kt
from keytokens.app.jobs import FitJob, fit_table
from keytokens.estimators import streaming
from keytokens.estimators.streaming import Workplace

from .mutate import mutated, mutated_json, touched
from .watch import Broken

ROWS = [
    "text,label",
    "a great film,pos", "great acting and a plot,pos", "dull and long,neg", "a dull plot,neg", "not great,neg",
    "a film of great length,neg", "odd but great,pos", "long and odd acting,neg", "great great plot,pos",
    "a good one,pos", "a good film with a dull end,pos", "no good,neg", "dull dull acting,neg", "good and odd,pos",
]  # fmt: skip
RUNS: dict[str, tuple[dict[str, Any], str, int]] = {  # the options, and where the run is stopped: at which saved state
    "score": ({"max_iter": 8}, "part0", 3),
    "all": ({"max_iter": 8}, "all", 3),
    "log": ({"max_iter": 6, "counts": "log", "ngrams": (1, 2)}, "all", 1),
}
STRIDE = 100_003  # a prime: in this stride all places are visited once, and early ones are everywhere
FITTED = ("attention_", "values_", "intercept_", "empty_", "mean_attention_", "class_counts_", "history_")


class _Stopped(BaseException):
    pass


class Working:
    """Half of them: each bit of each file, and each truncation. The others: damage by lot to bytes, JSON and files."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.data = folder, folder / "data.csv"
        self.data.write_text("\n".join(ROWS) + "\n")
        os.utime(self.data, (1, 1))  # a part of the records: inputs can be made again
        self.output = folder / "model"
        self.partial = folder / "model.partial"
        self.files: dict[str, dict[str, bytes]] = {}
        self.expected: dict[str, str] = {}
        self.names = list(RUNS)
        for name, (options, where, at) in RUNS.items():
            self.expected[name] = self.outcome(options, resume=False)
            self.files[name] = self._stopped(options, where, at)

    def outcome(self, options: dict[str, Any], resume: bool) -> str:
        """All that a user gets: the bits of the model and the score."""
        job = FitJob(
            data=str(self.data),
            output=self.output,
            options={**options, "threads": 1},
            text="text",
            label="label",
            holdout=0.3,
            memory=1_000_000_000,
            resume=resume,
        )
        score = fit_table(job).score
        assert score is not None
        if self.partial.exists():
            raise Broken("the working folder is left behind")
        model = kt.load(self.output)
        bits = [getattr(model, name).tobytes().hex() for name in FITTED if hasattr(model, name)]
        tokens = list(model.vocabulary_.tokens)
        return json.dumps([score.to_dict(), model.classes_.tolist(), tokens, bits])

    def _stopped(self, options: dict[str, Any], where: str, at: int) -> dict[str, bytes]:
        """The files of a run that ends right after it has saved a state."""
        save, every, count = Workplace.save_state, streaming._EVERY, 0

        def stop(place: Workplace, *given: Any) -> None:
            nonlocal count
            save(place, *given)
            count += place.folder.name == where
            if count == at:
                raise _Stopped

        Workplace.save_state, streaming._EVERY = stop, 0.0  # type: ignore[method-assign]
        try:
            self.outcome(options, resume=False)
        except _Stopped:
            pass
        finally:
            Workplace.save_state, streaming._EVERY = save, every  # type: ignore[method-assign]
        inside = sorted(file for file in self.partial.rglob("*") if file.is_file())
        return {str(file.relative_to(self.partial)): file.read_bytes() for file in inside}

    def make(self, rng: Random, index: int) -> bytes:
        """A run and its folder in one line of JSON: files by name, as text in latin-1."""
        turn, which = divmod(index, len(self.names))
        name = self.names[which]
        files = self._damaged(rng, turn, self.files[name])
        return json.dumps([name, {file: content.decode("latin-1") for file, content in files.items()}]).encode()

    def _damaged(self, rng: Random, index: int, files: dict[str, bytes]) -> dict[str, bytes]:
        place, is_lot = divmod(index, 2)
        read = {file: files[file] for file in files if "score.json" not in files or not file.startswith("part0/")}
        places = 9 * sum(map(len, read.values()))
        if not is_lot and 0 <= place < places:
            return files | touched(read, place * STRIDE % places)
        files = dict(files)
        for _ in range(rng.choice([1, 1, 2])):
            self._other(rng, files)
        return files

    def _other(self, rng: Random, files: dict[str, bytes]) -> None:
        chosen, run = rng.choice(sorted(files)), rng.choice(self.names)
        turn = rng.random()
        if turn < 0.15:
            files[chosen] = b""
        elif turn < 0.3 and len(files) > 1:
            del files[chosen]
        elif turn < 0.45:  # a file of another run, or another file of this one
            files[chosen] = rng.choice([*self.files[run].values(), *files.values()])
        elif chosen.endswith(".json") and turn < 0.9 and files[chosen].startswith(b"{"):
            with contextlib.suppress(ValueError):
                files[chosen] = mutated_json(rng, json.loads(files[chosen]))
        else:
            files[chosen] = mutated(rng, [files[chosen], *self.files[run].values()])

    def read(self, content: bytes) -> None:
        name, files = json.loads(content)
        shutil.rmtree(self.partial, ignore_errors=True)
        for file, text in files.items():
            (self.partial / file).parent.mkdir(parents=True, exist_ok=True)
            (self.partial / file).write_bytes(text.encode("latin-1"))
        if self.outcome(RUNS[name][0], resume=True) != self.expected[name]:
            raise Broken("another model, or another score, than that of an undisturbed run")


READERS = {"working": Working}
