"""The examples of docs/serve.md do what they say: each curl command is read, and its request is made."""

import json
import re
import shlex
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from keytokens import load
from keytokens.app.serve import Limits

from .conftest import Answer, Client, serving, table

PAGE = Path(__file__).parents[3] / "docs" / "serve.md"
COMMAND = re.compile(r"^(?:(?P<name>[A-Z]+)=\$\()?(?P<curl>curl .*?)(?: \| jq -r \.(?P<field>\w+)\))?$")
PLACE = "http://127.0.0.1:8765"


def commands() -> list[re.Match[str]]:
    blocks = re.findall(r"^```sh\n(.*?)^```", PAGE.read_text("utf-8"), re.M | re.S)
    lines = [line for block in blocks for line in block.splitlines() if "curl" in line]
    found = [COMMAND.match(line) for line in lines]
    assert all(found), "every example must be one that the test understands"
    return [one for one in found if one]


def asked(client: Client, command: str, known: dict[str, str]) -> Answer:
    """The request that curl would make."""
    for name, value in known.items():
        command = command.replace(f"${name}", value)
    words = iter(shlex.split(command)[1:])
    method, body, headers, path = None, None, {}, ""
    for word in words:
        if word == "-X":
            method = next(words)
        elif word == "-H":
            name, _, value = next(words).partition(": ")
            headers[name] = value
        elif word == "-d":
            body = next(words).encode()
        elif word == "--data-binary":
            assert next(words) == "@reviews.csv"
            body = table()
        elif word == "-o":
            next(words)
        elif word not in ("-s", "-N"):
            assert word.startswith(PLACE), word
            path = word.removeprefix(PLACE)
    return client.ask(method or ("GET" if body is None else "POST"), path, body, **headers)


@pytest.fixture(scope="module")
def answers(tmp_path_factory) -> list[tuple[str, Answer, Any]]:
    """All examples, in their order: command, answer, and the model in Python while it was there."""
    known: dict[str, str] = {}
    done: list[tuple[str, Answer, Any]] = []
    clf = None
    with serving(tmp_path_factory.mktemp("documented")) as client:
        for one in commands():
            answer = asked(client, one["curl"], known)
            assert answer.status < 300, (one["curl"], answer.body)
            if one["name"]:
                known[one["name"]] = answer.json[one["field"]]
            if one["name"] == "MODEL":
                clf = load(client.store.model_folder(known["MODEL"]) / "model")
            done.append((one["curl"], answer, clf))
        assert client.get("/api/models").json == {"models": []}, "the last examples delete what was made"
    return done


def answer_to(answers, part: str) -> tuple[Answer, Any]:
    return next((answer, clf) for command, answer, clf in answers if part in command)


def test_the_answers_are_pythons(answers):
    answer, clf = answer_to(answers, "/predict")
    texts = ["a great film", "a dull plot"]
    assert (clf.ngrams, clf.class_weight) == ((1, 2), "balanced"), "the options arrive"
    assert answer.json["labels"] == clf.predict(texts).tolist() == ["pos", "neg"]
    assert answer.json["probabilities"] == clf.predict_proba(texts).tolist()
    answer, clf = answer_to(answers, "/explain")
    records = [clf.explain(text).to_dict(words=False) for text in texts]
    assert answer.json["explanations"] == json.loads(json.dumps(records))
    answer, clf = answer_to(answers, '"words": true')
    assert answer.json["explanations"] == json.loads(json.dumps([clf.explain("a great film").to_dict()]))
    answer, _ = answer_to(answers, "/events")
    lines = [line for line in answer.body.decode().splitlines() if line]
    assert json.loads(lines[-1].removeprefix("data: "))["state"] == "done"


def test_every_route_has_an_example(answers, server):
    """All that OpenAPI lists, but for the record of an upload."""
    shown = " ".join(command for command, _, _ in answers)
    for path in server.get("/openapi.json").json["paths"]:
        pattern = re.escape(path).replace(r"\{id\}", r"\$[A-Z]+")
        assert re.search(PLACE + pattern, shown), path


LIMITS: dict[str, tuple[float, str]] = {  # the value, and what the page says
    "body": (4_000_000, "4 MB"),
    "bodies": (256_000_000, "256 MB together"),
    "upload": (1_000_000_000, "1 GB, also unpacked"),
    "uploads": (16, "16 at once"),
    "connections": (4_000, "| connections | 4,000"),
    "header_seconds": (10.0, "| headers of a request | arrived within 10 s"),
    "body_seconds": (30.0, "arrived within 30 s"),
    "idle_seconds": (30.0, "never silent for 30 s"),
    "rate": (10_000, "10 kB a second"),
    "preview_seconds": (300.0, "read within 300 s"),
    "previews": (2, ""),
    "texts": (1_000, "| 1,000, of"),
    "text": (200_000, "200,000 characters"),
    "explain": (200_000, "| characters to explain in a request | 200,000;"),
    "explain_words": (50_000, "50,000 with sets of words"),
    "requests": (512, "| requests at work at once | 512 |"),
    "streams": (64, "| pages that follow a training | 64 |"),
    "answer_seconds": (60.0, "| an answer | 60 s |"),
    "trainings": (1, "1 at once, 16 waiting"),
    "waiting": (16, "16 waiting"),
}


def test_the_limits_are_those_of_the_code():
    page = PAGE.read_text("utf-8")
    assert asdict(Limits()) == {name: value for name, (value, _) in LIMITS.items()}, "the table must be written anew"
    assert all(words in page for _, words in LIMITS.values())
