"""The routes: pages for people, JSON for scripts. Every refusal is {"error": "one clear line"} with a 4xx status."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import sqlite3
import tempfile
import zipfile
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import IO, Annotated, Any, TypeVar

from fastapi import FastAPI, HTTPException, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from pydantic import BaseModel, ConfigDict, FailFast, Field, model_validator
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from ..._version import __version__
from ...base.errors import DataError, InputError, KeyTokensError, MissingExtra
from ...explain.html import shell, static_text
from ...io.sources import COMPRESSIONS, FORMATS, kind_of
from ...model.weighting import WEIGHTINGS
from ..explorer.page import explorer_page, script, style
from .guard import LOOPBACK, Guard, Limits, error_body
from .models import Shelf
from .runs import Busy, Runs
from .store import NotThere, Store, check_names, new_id, reason
from .turns import Places, Turns, while_there
from .worker import look

T = TypeVar("T")
PARTS = ("model", "overview", "documents")
_LOADED = 4  # models kept in memory
_NAMES = 100  # in one JSON object
_PIECE = 1 << 16  # bytes that are sent at a time
_IN_MEMORY = 1 << 23  # bytes of a zip file; a larger one is made on the disk


def _plain(content: Any) -> str:
    """JSON in plain ASCII: a text may hold half a character (a lone surrogate), which UTF-8 cannot."""
    return json.dumps(content, allow_nan=False, separators=(",", ":"))


def _joined(lists: Iterable[str]) -> str:
    """One list in JSON, of several."""
    return f"[{','.join(one[1:-1] for one in lists)}]"


class _PlainJSON(JSONResponse):
    def render(self, content: Any) -> bytes:
        return _plain(content).encode("ascii")


class _Asked(BaseModel):
    """A request: what is wrong with it is found in little time, however much is."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def few_names(cls, given: Any) -> Any:
        if isinstance(given, dict) and len(given) > _NAMES:
            raise ValueError(f"a request may have {_NAMES} names; saw {len(given):,}")
        return given


class _Record(BaseModel):
    model_config = ConfigDict(extra="allow")


class ModelRecord(_Record):
    """A stored model."""

    id: str
    name: str
    created: float
    classes: list[Any]
    tokens: int
    texts: int | None
    bytes: int
    score: dict[str, Any] | None


class Models(BaseModel):
    models: list[ModelRecord]


class UploadRecord(_Record):
    """A stored table and its columns; `text` and `label` are guesses."""

    id: str
    name: str
    rows: int
    columns: list[str]
    text: str | None
    label: str | None
    preview: list[list[str]]


class Options(_Asked):
    """Options of a training; what is left out has the classifier's default."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    ngrams: int = Field(3, ge=1, le=5, description="Longest n-gram, in words.")
    counts: str = Field("raw", pattern=f"^({'|'.join(WEIGHTINGS)})$")
    sink: float | None = Field(None, ge=0)
    attention_penalty: float | None = Field(None, gt=0)
    brevity: float | None = Field(None, ge=0, le=1, description="Larger: fewer tokens decide.")
    max_tokens: int | None = Field(None, ge=1)
    balanced: bool = Field(False, description="Give every class the same total weight.")

    def chosen(self) -> dict[str, Any]:
        """As `set_params` of the classifier takes them."""
        given = {
            "prior__sink": self.sink,
            "prior__attention_penalty": self.attention_penalty,
            "brevity": self.brevity,
            "max_tokens": self.max_tokens,
        }
        options = {name: value for name, value in given.items() if value is not None}
        return {
            "ngrams": (1, self.ngrams),
            "counts": self.counts,
            "class_weight": "balanced" if self.balanced else None,
            **options,
        }


class RunRequest(_Asked):
    upload: str
    text: str | None = Field(None, description="Column with the text; guessed if not given.")
    label: str | None = Field(None, description="Column with the label; guessed if not given.")
    title: str = Field("", max_length=200, description="Name of the model; by default that of the file.")
    options: Options = Options()  # type: ignore[call-arg]


class RunRecord(_Record):
    """A training: queued, running, done, failed, cancelled or interrupted."""

    id: str
    state: str
    message: str
    model: str | None
    progress: dict[str, Any] | None


class Runlist(BaseModel):
    runs: list[RunRecord]


class Texts(_Asked):
    texts: Annotated[list[str], FailFast()]  # a million wrong ones would be a million complaints


class ExplainRequest(Texts):
    words: bool = Field(False, description="Also the sets of words, which can take a second for a long text.")


class Prediction(BaseModel):
    classes: list[Any]
    labels: list[Any]
    probabilities: list[list[float]]


class Explanations(BaseModel):
    explanations: list[dict[str, Any]]


class _Server:
    """What the routes share."""

    def __init__(self, store: Store, limits: Limits) -> None:
        self.store = store
        self.limits = limits
        self.runs = Runs(store, limits)
        self.turns = Turns(max(2, os.cpu_count() or 2))
        self.shelf = Shelf(store, _LOADED)
        self.looks = asyncio.Semaphore(limits.previews)
        self.packing = Turns(limits.previews)
        self.uploads = Places(limits.uploads, "uploads")
        self.streams = Places(limits.streams, "pages follow a training")

    async def work(self, request: Request, texts: list[str], job: Callable[[Sequence[str]], T]) -> list[T]:
        """In threads, for a limited time, and while the client is there: the answer comes or is given up."""
        try:
            answer = asyncio.wait_for(self.turns.each(texts, job), self.limits.answer_seconds)
            return await while_there(request, answer)
        except TimeoutError:
            raise HTTPException(503, "the answer took too long. Send fewer or shorter texts.") from None

    def checked(self, texts: list[str], most: int | None = None) -> list[str]:
        if len(texts) > self.limits.texts:
            raise HTTPException(413, f"a request may have {self.limits.texts:,} texts; saw {len(texts):,}.")
        longest = max(map(len, texts), default=0)
        if longest > self.limits.text:
            raise HTTPException(413, f"a text may have {self.limits.text:,} characters; saw {longest:,}.")
        total = sum(map(len, texts))
        if most is not None and total > most:
            raise HTTPException(413, f"texts to explain may have {most:,} characters in all; saw {total:,}.")
        return texts


def create_app(
    store: Store, *, limits: Limits | None = None, token: str | None = None, hosts: tuple[str, ...] = LOOPBACK
) -> FastAPI:
    """The application on a store; `hosts` are the names it answers to, none for any."""
    limits = limits or Limits()
    server = _Server(store, limits)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await server.runs.close()
        server.turns.close()
        server.packing.close()

    app = FastAPI(title="keytokens", version=__version__, docs_url=None, redoc_url=None, lifespan=lifespan)
    app.add_middleware(Guard, hosts=hosts, token=token, limits=limits)
    app.state.runs = server.runs
    _add_errors(app)
    _add_pages(app, server)
    _add_models(app, server)
    _add_uploads(app, server)
    _add_runs(app, server)
    return app


def _add_errors(app: FastAPI) -> None:
    """What each kind of error is answered with: of several kinds that an error is of, the nearest one says it."""

    def answer(kind: type[Exception], status: int | Callable[[Any], int], says: Callable[[Any], str] = str) -> None:
        async def handler(_: Request, error: Exception) -> JSONResponse:
            return _PlainJSON(error_body(says(error)), status if isinstance(status, int) else status(error))

        app.add_exception_handler(kind, handler)

    answer(StarletteHTTPException, lambda error: error.status_code, lambda error: str(error.detail))
    answer(RequestValidationError, 422, _first_complaint)
    answer(NotThere, 404)
    answer(Busy, 429)
    answer(InputError, 400)
    answer(MissingExtra, 415)
    answer(KeyTokensError, 500)
    for kind in (OSError, sqlite3.Error):
        answer(kind, lambda error: 507 if _is_full(error) else 500, lambda e: f"the store cannot be used: {reason(e)}.")
    answer(ClientDisconnect, 400, lambda _: "the request ended too early.")
    answer(Exception, 500, lambda error: f"something went wrong here ({type(error).__name__}).")


def _first_complaint(error: RequestValidationError) -> str:
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"] if part != "body")
    return f"{place or 'the body'}: {first['msg'].lower()}."


def _is_full(error: OSError | sqlite3.Error) -> bool:
    if isinstance(error, OSError):
        return error.errno in (errno.ENOSPC, errno.EDQUOT)
    return getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL


def home_page() -> str:
    """The first page: models, and training a new one; it talks to its own server only."""
    body, home, look = (static_text(__package__, f"home.{kind}") for kind in ("html", "js", "css"))
    code = script("dom.js", "format.js", "theme.js") + home
    return shell("keytokens", body.strip(), style() + look, script=code, allow="connect-src 'self'")


def _add_pages(app: FastAPI, server: _Server) -> None:
    @app.get("/", response_class=HTMLResponse, include_in_schema=False)
    def home() -> HTMLResponse:
        return HTMLResponse(home_page())

    @app.get("/models/{id}", response_class=HTMLResponse, include_in_schema=False)
    def explorer(id: str) -> HTMLResponse:
        record = server.store.model(id)
        return HTMLResponse(explorer_page(record["name"], source=f"/models/{id}/", home="/"))

    @app.get("/models/{id}/report.html", response_class=HTMLResponse, include_in_schema=False)
    def report(id: str) -> HTMLResponse:
        record = server.store.model(id)
        folder = server.store.model_folder(id)
        contents = {name: (folder / f"{name}.bin").read_bytes() for name in PARTS if (folder / f"{name}.bin").is_file()}
        named = {"content-disposition": 'attachment; filename="report.html"'}
        return HTMLResponse(explorer_page(record["name"], contents), headers=named)

    @app.get("/models/{id}/{part}", include_in_schema=False)
    def container(id: str, part: str) -> Response:
        server.store.model(id)
        file = server.store.model_folder(id) / f"{part}.bin"
        if part not in PARTS or not file.is_file():
            raise HTTPException(404, f"the model has no {part[:40]!r}.")
        content = file.open("rb")
        return _Pieces(content, os.fstat(content.fileno()).st_size, "application/octet-stream")


def _add_models(app: FastAPI, server: _Server) -> None:
    @app.get("/api/models")
    def models() -> Models:
        """All models, newest first."""
        return Models(models=[ModelRecord(**record) for record in server.store.models()])

    @app.get("/api/models/{id}")
    def model(id: str) -> ModelRecord:
        return ModelRecord(**server.store.model(id))

    @app.delete("/api/models/{id}", status_code=204)
    def remove(id: str) -> None:
        server.store.remove_model(id)
        server.shelf.forget(id)

    @app.post("/api/models/{id}/predict", response_model=Prediction)
    async def predict(id: str, asked: Texts, request: Request) -> Response:
        """Labels and probabilities of texts."""
        texts = server.checked(asked.texts)

        def job(portion: Sequence[str]) -> tuple[str, str, str]:
            """Written here, in the thread, and not checked once more."""
            clf = server.shelf.model(id)
            P = clf.predict_proba(portion)
            labels = clf.classes_[P.argmax(axis=1)].tolist() if len(P) else []
            return _plain(clf.classes_.tolist()), _plain(labels), _plain(P.tolist())

        classes, labels, P = zip(*await server.work(request, texts, job), strict=True)
        return _json(f'{{"classes":{classes[0]},"labels":{_joined(labels)},"probabilities":{_joined(P)}}}')

    @app.post("/api/models/{id}/explain", response_model=Explanations)
    async def explain(id: str, asked: ExplainRequest, request: Request) -> Response:
        """The record of each text's explanation; with `words`, as `keytokens explain --json` prints it."""
        most = server.limits.explain_words if asked.words else server.limits.explain
        texts = server.checked(asked.texts, most)

        def job(portion: Sequence[str]) -> str:
            clf = server.shelf.model(id)
            return _plain([clf.explain(text).to_dict(asked.words) for text in portion])

        return _json(f'{{"explanations":{_joined(await server.work(request, texts, job))}}}')

    @app.get("/api/models/{id}/download", response_class=Response)
    async def download(id: str, request: Request) -> Response:
        """The model directory as a zip file."""
        server.store.model(id)
        packed = server.packing.each([], lambda _: _zipped(server.store.model_folder(id) / "model"))
        [content] = await while_there(request, packed)
        named = {"content-disposition": 'attachment; filename="model.zip"'}
        return _Pieces(content, content.tell(), "application/zip", named)


def _json(content: str) -> Response:
    return Response(content.encode("ascii"), media_type="application/json")


class _Pieces(StreamingResponse):
    """A file that is sent piece by piece and then closed, also when nobody reads it to the end."""

    def __init__(self, content: IO[bytes], size: int, kind: str, headers: dict[str, str] | None = None) -> None:
        length = {"content-length": str(size)}
        super().__init__(_pieces(content), media_type=kind, headers={**length, **(headers or {})})
        self._content = content

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._content.close()


def _zipped(folder: Path) -> IO[bytes]:
    """A zip file without a name, at its end; a large one is not held in memory."""
    with ExitStack() as if_it_fails:
        content = if_it_fails.enter_context(tempfile.SpooledTemporaryFile(_IN_MEMORY))
        with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted(folder.iterdir()):
                archive.write(file, f"{folder.name}/{file.name}")
        if_it_fails.pop_all()
    return content


def _pieces(content: IO[bytes]) -> Iterator[bytes]:
    content.seek(0)
    while piece := content.read(_PIECE):
        yield piece


def _kind_of(name: str) -> tuple[str, str]:
    """The format of an upload and the ending of its packing, if any; the endings are those of the command line."""
    ending = Path(name).suffix.lower()
    try:
        return kind_of(f"/{name}"), ending if ending in COMPRESSIONS else ""  # "-" alone would be standard input
    except DataError:
        known, packed = ", ".join(sorted(FORMATS)), ", ".join(COMPRESSIONS)
        rule = f"the file's name must end in one of {known}, which {packed} may follow"
        raise HTTPException(415, f"{rule}; saw {name[:80]!r}.") from None


def _add_uploads(app: FastAPI, server: _Server) -> None:
    @app.post("/api/uploads", status_code=201)
    async def upload(request: Request, name: Annotated[str, Query(min_length=1, max_length=255)]) -> UploadRecord:
        """Store a table (the body, as it is); `name` is its file name, whose ending says what it is."""
        kind, packing = _kind_of(name)
        id = new_id()
        file = server.store.upload_path(id, f".{kind}{packing}")

        async def looked() -> dict[str, Any]:
            async with server.looks:
                return await look(file, kind, name, server.limits.preview_seconds, server.limits.upload)

        with server.uploads:
            try:
                with file.open("xb") as target:
                    async for piece in request.stream():
                        target.write(piece)
                record = server.store.add_upload(id, name, file, await while_there(request, looked()))
            except BaseException:
                file.unlink(missing_ok=True)
                raise
        return UploadRecord(**record)

    @app.get("/api/uploads/{id}")
    def uploaded(id: str) -> UploadRecord:
        return UploadRecord(**server.store.upload(id))

    @app.delete("/api/uploads/{id}", status_code=204)
    def remove_upload(id: str) -> None:
        server.store.remove_upload(id)


def _check_label(upload: dict[str, Any], column: str | None) -> None:
    """Nothing can be learned of labels that are all different; that is known before a training starts."""
    rows, name = upload["rows"], column or upload["label"]
    holds = dict(zip(upload["columns"], upload.get("holds", []), strict=False))
    if rows > 1 and name in holds and holds[name]["distinct"] == rows:
        raise InputError(
            f"serve: the label column must hold few values, many times each; all {rows:,} of {name!r} are different. "
            "Name another column."
        )


def _add_runs(app: FastAPI, server: _Server) -> None:
    @app.get("/api/runs")
    async def runs() -> Runlist:
        return Runlist(runs=[RunRecord(**server.runs.latest(run["id"])) for run in server.store.runs()])

    @app.post("/api/runs", status_code=202)
    async def start(request: RunRequest) -> RunRecord:
        """Train a model on an upload."""
        check_names("title and columns", [request.title, request.text, request.label])
        _check_label(server.store.upload(request.upload), request.label)
        spec = {**request.model_dump(exclude={"options"}), "options": request.options.chosen()}
        return RunRecord(**server.runs.latest(server.runs.start(spec)))

    @app.get("/api/runs/{id}")
    async def run(id: str) -> RunRecord:
        return RunRecord(**server.runs.latest(id))

    @app.post("/api/runs/{id}/cancel")
    async def cancel(id: str) -> RunRecord:
        server.runs.cancel(id)
        await asyncio.sleep(0)
        return RunRecord(**server.runs.latest(id))

    @app.get("/api/runs/{id}/events", response_class=StreamingResponse)
    async def events(id: str) -> StreamingResponse:
        """Server-sent events: the run's record after each change, until it has ended."""
        server.store.run(id)
        server.streams.check()

        async def lines() -> AsyncIterator[str]:
            with server.streams:
                async for record in server.runs.events(id):
                    yield f"data: {json.dumps(record)}\n\n" if record else ": still there\n\n"

        return StreamingResponse(lines(), media_type="text/event-stream")
