"""Bytes and JSON, damaged by lot. The lot is a `random.Random`: the same lot, the same damage."""

import json
import re
from collections.abc import Callable, Sequence
from copy import deepcopy
from random import Random
from typing import Any

WORDS = [
    b"", b"\0", b"\n", b"\r\n", b'"', b"'", b",", b";", b"\t", b"|", b" ", b"{", b"}", b"[", b"]", b":", b"\\",
    b"\\u", b"\\ud800", b"\xff", b"\xef\xbb\xbf", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x80\xa8",
    b"\x1b[31m", b"\x7f", b"\x1a", b"null", b"true", b"NaN", b"-Infinity", b"1e999", b"-0", b"--5", b"9" * 30,
    b"1" * 5000, b"[" * 2000, b'{"a":' * 500,
    b"<script>alert(1)</script>", b"</script>", b"&amp;", b"../../etc/passwd", b"/etc/passwd", b"%00", b"%2e%2e%2f",
    b"=cmd|' /C calc'!A0", b"text", b"label", b"\xf0\x9f\x98\x80", b"\xcc\x81" * 40, b"a" * 3000,
]  # fmt: skip
_SIZES = [0, 1, 2, 7, 8, 127, 128, 255, 256, 32767, 65535, 65536, 2**24, 2**31 - 1, 2**31, 2**32 - 1, 2**60, 2**63 - 1]
_LARGEST = 1 << 17

Step = Callable[[Random, bytearray, Sequence[bytes]], None]


def _flip(rng: Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    if data:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def _set(rng: Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    if data:
        data[rng.randrange(len(data))] = rng.randrange(256)


def _cut(rng: Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    del data[rng.randint(0, len(data)) :]


def _drop(rng: Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    at = rng.randint(0, len(data))
    del data[at : at + rng.randint(1, 16)]


def _repeat(rng: Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    at = rng.randint(0, len(data))
    piece = data[at : at + rng.randint(1, 64)]
    data[at:at] = piece * rng.choice([1, 2, 30])


def _word(rng: Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    at = rng.randint(0, len(data))
    data[at : at + rng.choice([0, 0, 1, 4])] = rng.choice(WORDS)


def _splice(rng: Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    other = rng.choice(seeds)
    at, begin = rng.randint(0, len(data)), rng.randint(0, len(other))
    data[at : at + rng.choice([0, 8, 10**9])] = other[begin : begin + rng.choice([4, 64, 10**9])]


def _size(rng: Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    """A whole number in its bytes, as headers have them."""
    width = rng.choice([1, 2, 4, 8])
    at = rng.randint(0, max(0, len(data) - width))
    data[at : at + width] = (rng.choice(_SIZES) % (1 << 8 * width)).to_bytes(width, rng.choice(["little", "big"]))


def _number(rng: Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    """A number in digits."""
    found = list(re.finditer(rb"\d+", data[:100_000]))
    if found:
        place = rng.choice(found)
        data[place.start() : place.end()] = rng.choice([b"-1", b"1e308", b"0.5", b"00", *(b"%d" % n for n in _SIZES)])


_STEPS: list[Step] = [_flip, _flip, _set, _cut, _drop, _repeat, _word, _word, _splice, _size, _number]


def mutated(rng: Random, seeds: Sequence[bytes]) -> bytes:
    """One of the seeds after one to five damages."""
    data = bytearray(rng.choice(seeds))
    for _ in range(rng.choice([1, 1, 1, 2, 3, 5])):
        rng.choice(_STEPS)(rng, data, seeds)
    return bytes(data[:_LARGEST])


_VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 2, 3, 2**31, 2**63, 2**64, -(2**63), 10**400, 0.5, 1e-320, 1e308, -1e308,
    float("nan"), float("inf"), "", " ", "a", "neg", "1", "\0", "\n", "a\0", "\ud800", "\udfff", "\x1b[31m", "\u202e",
    "x" * 5000, "<script>alert(1)</script>", "</script><img src=x onerror=alert(1)>",
    "../../etc/passwd", "balanced", "raw", "KeyTokenClassifier",
    [], {}, [[]], [None], ["a", "a"], ["a", 1], [1, 2], [1, True], [0.5, 1.5], {"pairs": []}, {"pairs": [["a", 1]]},
    {"pairs": [[[], 1]]}, {"pairs": 5}, {"name": "x"},
]  # fmt: skip


def touched(files: dict[str, bytes], place: int) -> dict[str, bytes]:
    """One file with one bit changed, or cut: each byte has nine places. Past the last of them, nothing."""
    for file, content in files.items():
        at, how = divmod(place, 9)
        if at < len(content):
            bit = 1 << how if how < 8 else 0
            return {file: content[:at] + bytes([content[at] ^ bit]) + content[at + 1 :] if bit else content[:at]}
        place -= 9 * len(content)
    return {}


def mutated_json(rng: Random, record: Any) -> bytes:
    """A record with a few values replaced, dropped, exchanged or buried deep, and sometimes a key that comes twice."""
    whole = {"": json.loads(json.dumps(record))}
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        _damage(rng, whole)
    text = json.dumps(whole.get(""))
    if rng.random() < 0.1 and text.startswith("{") and len(text) > 2 and isinstance(record, dict):
        key, value = rng.choice(list(record)), rng.choice(_VALUES)
        text = text[:-1] + f", {json.dumps(key)}: {json.dumps(value)}}}"
    return text.encode()


def _damage(rng: Random, whole: dict[str, Any]) -> None:
    places = list(_places(whole))
    holder, key = rng.choice(places)
    turn = rng.random()
    if turn < 0.6:
        holder[key] = deepcopy(rng.choice(_VALUES))
    elif turn < 0.75 and key != "":
        del holder[key]
    elif turn < 0.9:
        other, name = rng.choice(places)
        holder[key] = json.loads(json.dumps(other.get(name) if isinstance(other, dict) else None))
    else:
        for _ in range(rng.choice([1, 40, 300])):
            holder[key] = [holder[key]]


def _places(value: Any) -> Any:
    """Every (holder, key) below a value."""
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in list(below):
        yield value, key
        yield from _places(inner)
