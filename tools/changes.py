"""The change log from its fragments: changes/<name>.<kind>.md, a sentence or two each, so that no two edits collide.

python tools/changes.py            prints the section of the next release
python tools/changes.py --release  writes it into CHANGELOG.md, under the present version, and removes the fragments
"""

from __future__ import annotations

import re
import sys
from datetime import date
from pathlib import Path

ROOT = Path(__file__).parent.parent
KINDS = {"added": "Added", "changed": "Changed", "fixed": "Fixed", "removed": "Removed"}


def fragments(folder: Path) -> list[Path]:
    return sorted(file for file in folder.glob("*.md") if file.name != "README.md")


def kind_of(file: Path) -> str:
    """The part of the name that says what kind of change it is; a ValueError if it says none."""
    kind = file.name.split(".")[-2] if file.name.count(".") == 2 else ""
    if kind not in KINDS:
        raise ValueError(f"changes/{file.name}: must be called <name>.<kind>.md, the kind one of {', '.join(KINDS)}")
    return kind


def section(files: list[Path]) -> str:
    by_kind = {kind: [file for file in files if kind_of(file) == kind] for kind in KINDS}
    parts = []
    for kind, some in by_kind.items():
        lines = [f"- {' '.join(file.read_text('utf-8').split())}" for file in some]
        if lines:
            parts.append("\n".join([f"### {KINDS[kind]}", "", *lines]))
    return "\n\n".join(parts) or "Nothing yet."


def release(log: str, version: str, day: str, news: str) -> str:
    """The log with one more section on top.

    >>> print(release("# Changes\\n\\n## 0.1.0\\n\\nFirst.\\n", "0.2.0", "2027-01-01", "- More."))
    # Changes
    <BLANKLINE>
    ## 0.2.0, 2027-01-01
    <BLANKLINE>
    - More.
    <BLANKLINE>
    ## 0.1.0
    <BLANKLINE>
    First.
    <BLANKLINE>
    """
    head, mark, rest = log.partition("\n## ")
    return f"{head}\n## {version}, {day}\n\n{news}\n{mark}{rest}"


if __name__ == "__main__":
    files = fragments(ROOT / "changes")
    if sys.argv[1:] == ["--release"]:
        (version,) = re.findall(r'__version__ = "(.+)"', (ROOT / "src/keytokens/_version.py").read_text("utf-8"))
        log = ROOT / "CHANGELOG.md"
        log.write_text(release(log.read_text("utf-8"), version, date.today().isoformat(), section(files)), "utf-8")
        for file in files:
            file.unlink()
    else:
        print(section(files))
