"""Build the release and try it: the same bytes twice, pure Python, and at work in an environment that has nothing else.

    python tools/wheel.py dist      writes the wheel and the sdist there, and prints their sizes

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
import sys, keytokens as kt
home = kt.__file__
assert home.startswith(sys.prefix), f"keytokens comes from {home}, not from what was installed"
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


def main(target: Path) -> None:
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
        python = environment(scratch / "venv", wheel)
        smoke(python, scratch / "from-wheel")
        run([python, "-m", "pip", "install", "--quiet", "--force-reinstall", "--no-deps", sdist])
        smoke(python, scratch / "from-sdist")
        sizes(python)


def build(source: Path, target: Path) -> tuple[Path, Path]:
    """The wheel and the sdist of a source tree."""
    for old in target.glob("keytokens-*"):
        old.unlink()
    run([sys.executable, "-m", "hatchling", "build", "-d", target.resolve()], cwd=source)
    (wheel,), (sdist,) = target.glob("*.whl"), target.glob("*.tar.gz")
    return wheel, sdist


def environment(folder: Path, wheel: Path) -> Path:
    """The Python of a new environment with this wheel and what it needs."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel])
    return python


def smoke(python: Path, folder: Path) -> None:
    """Train, predict, explain and write pages, far from the checkout."""
    folder.mkdir()
    run([python, "-I", "-W", "error", "-c", SMOKE], cwd=folder)
    for command in COMMANDS:
        run([python.parent / "keytokens", *command.split()], cwd=folder, stdout=subprocess.DEVNULL)


def sizes(python: Path) -> None:
    site = next((python.parent.parent / "lib").glob("python*/site-packages"))
    whole, own = (
        sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()) for folder in (site, site / "keytokens")
    )
    print(f"installed: {own / 1e6:.1f} MB of keytokens, {whole / 1e6:.0f} MB with pip and all that it needs")


def run(words: list[object], **more: object) -> None:
    done = subprocess.run([str(word) for word in words], **more)  # type: ignore[call-overload]
    if done.returncode:
        sys.exit(f"wheel: this failed: {' '.join(map(str, words))[:200]}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
