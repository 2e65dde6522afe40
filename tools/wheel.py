"""Build the release and try it: the same bytes twice, pure Python, and at work in an environment that has nothing else.

    python tools/wheel.py dist              writes the wheel and the sdist there, tries both, and prints sizes
    python tools/wheel.py dist --quick      tries the wheel alone, and says nothing of sizes

The second wheel is built from the unpacked sdist, in another folder: equal bytes also say that the sdist is whole.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tarfile
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent

SMOKE = """
import pathlib, sys, keytokens as kt
home = kt.__file__
assert home.startswith(sys.prefix), f"keytokens comes from {home}, not from what was installed"
assert pathlib.Path(home).with_name("py.typed").is_file(), "no py.typed: type checkers would see nothing"
texts = ["a great film", "great acting, great plot", "a dull plot", "dull and far too long"]
clf = kt.KeyTokenClassifier().fit(texts, ["good", "good", "bad", "bad"])
e = clf.explain("a dull plot, but great acting")
e.to_html("why.html")
rows = [f'"{text}",{label}' for text, label in zip(texts, clf.predict(texts))]
with open("reviews.csv", "w") as table:
    print("text,label", *rows * 5, sep="\\n", file=table)
print(kt.__version__, e.certificate.sentence)
"""
COMMANDS = ("fit reviews.csv -o model", "predict model reviews.csv -o out.csv", "report model reviews.csv -o page.html")


def main(target: Path, quick: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        wheel, sdist = build(ROOT, target)
        with tarfile.open(sdist) as packed:
            packed.extractall(scratch, filter="data")
        again = build(scratch / sdist.name.removesuffix(".tar.gz"), scratch / "again")
        for one, other in zip((wheel, sdist), again, strict=True):
            if one.read_bytes() != other.read_bytes():
                sys.exit(f"wheel: {one.name} has other bytes when it is built again, from the sdist")
            print(f"{hashlib.sha256(one.read_bytes()).hexdigest()}  {one.name}  {one.stat().st_size:,} bytes")
        if not wheel.name.endswith("-py3-none-any.whl"):
            sys.exit(f"wheel: {wheel.name} is not pure Python")
        venv.create(scratch / "venv")
        python = scratch / "venv" / "bin" / "python"
        install(python, wheel, *(["--no-compile"] if quick else []))  # modules are compiled when they are needed
        smoke(python, scratch / "from-wheel")
        if not quick:
            print(f"installed: {megabytes(python, 'keytokens'):.1f} MB of keytokens")
            print(f"installed: {megabytes(python):.0f} MB with all that it needs")
            install(python, sdist, "--force-reinstall", "--no-deps")
            smoke(python, scratch / "from-sdist")
            install(python, f"{wheel}[all]")
            print(f"installed: {megabytes(python):.0f} MB with all extras")


def build(source: Path, target: Path) -> tuple[Path, Path]:
    """The wheel and the sdist of a source tree."""
    for old in target.glob("keytokens-*"):
        old.unlink()
    run([sys.executable, "-m", "hatchling", "build", "-d", target.resolve()], cwd=source)
    (wheel,), (sdist,) = target.glob("*.whl"), target.glob("*.tar.gz")
    return wheel, sdist


def install(python: Path, what: object, *options: str) -> None:
    """Into the environment of that Python, which has no pip of its own."""
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--disable-pip-version-check"]
    run([*pip, *options, what])


def smoke(python: Path, folder: Path) -> None:
    """Train, predict, explain and write pages, far from the checkout."""
    folder.mkdir()
    run([python, "-I", "-W", "error", "-c", SMOKE], cwd=folder)
    for command in COMMANDS:
        run([python.parent / "keytokens", *command.split()], cwd=folder, stdout=subprocess.DEVNULL)


def megabytes(python: Path, package: str = "") -> float:
    """What is installed, or one package of it."""
    site = next((python.parent.parent / "lib").glob("python*/site-packages"))
    return sum(file.stat().st_size for file in (site / package).rglob("*") if file.is_file()) / 1e6


def run(words: list[object], **more: object) -> None:
    done = subprocess.run([str(word) for word in words], **more)  # type: ignore[call-overload]
    if done.returncode:
        sys.exit(f"wheel: this failed: {' '.join(map(str, words))[:200]}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), quick="--quick" in sys.argv[2:])
