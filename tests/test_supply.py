"""What users install: one version, bounds and licences of all that comes along, and an import that is cheap."""

import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import keytokens

from .conftest import script

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

# SPDX names. What is not here is refused until somebody has read it.
PERMISSIVE = {"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "ISC", "MIT", "MIT-CMU", "PSF-2.0"}
PERMISSIVE |= {"Zlib"}
# The same in the words of older metadata: a classifier, or a line of its own.
SPELLED = {
    "Apache License, Version 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD": "BSD-3-Clause",
    "BSD License": "BSD-3-Clause",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
# Beyond the list, by package and with a reason.
EXCEPTIONS = {"tqdm": {"MPL-2.0"}}  # asks for its own files only, and we neither change nor ship them


# Licences ------------------------------------------------------------------------------------------------------------


def needed(name: str, extras: set[str], seen: dict[str, set[str]]) -> dict[str, set[str]]:
    """All that a package brings along, with the extras asked of each; a package that is not installed is left out."""
    key, wanted = canonicalize_name(name), {"", *extras}
    if wanted <= seen.get(key, set()):
        return seen
    seen[key] = seen.get(key, set()) | wanted
    for requirement in map(Requirement, metadata.requires(name) or []):
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in wanted):
            try:
                needed(requirement.name, set(requirement.extras), seen)
            except metadata.PackageNotFoundError:
                seen.pop(canonicalize_name(requirement.name), None)
    return seen


def stated(expression: str | None, line: str | None, classifiers: list[str]) -> list[set[str]]:
    """The licences that metadata states, as alternatives; each is a set of licences that all apply."""
    spelled = [SPELLED.get(each, each) for each in (c.split(" :: ")[-1] for c in classifiers if "License ::" in c)]
    short = (line or "").strip() if "\n" not in (line or "") and len(line or "") < 80 else ""
    text = expression or (" AND ".join(spelled) if spelled else SPELLED.get(short, short))
    bare = text.replace("(", "").replace(")", "")
    return [{part.strip() for part in choice.split(" AND ")} for choice in bare.split(" OR ")] if bare else [{"none"}]


def objection(package: str, choices: list[set[str]]) -> str | None:
    """Why a package may not come along; None if it may."""
    allowed = PERMISSIVE | EXCEPTIONS.get(package, set())
    if any(choice <= allowed for choice in choices):
        return None
    found = " or ".join(" and ".join(sorted(choice)) for choice in choices)
    return f"{package}: its licence is {found}, which is not in the list of permissive ones"


def test_licences_of_all_that_comes_along():
    packages = needed("keytokens", {"all"}, {})
    assert {"numpy", "scipy", "scikit-learn", "typer"} <= set(packages)
    objections = []
    for package in sorted(packages):
        about = metadata.metadata(package)
        choices = stated(about.get("License-Expression"), about.get("License"), about.get_all("Classifier", []))
        objections.append(objection(package, choices))
    assert not [each for each in objections if each]


@pytest.mark.parametrize(
    ("expression", "line", "classifiers", "fine"),
    [
        ("MIT", None, [], True),
        ("Apache-2.0 OR BSD-2-Clause", None, [], True),
        ("GPL-3.0-only OR MIT", None, [], True),  # a choice, and we choose
        ("BSD-3-Clause AND MIT", None, [], True),
        (None, "BSD-3-Clause", [], True),
        (None, "Copyright\n" * 50, ["License :: OSI Approved :: BSD License"], True),
        ("GPL-3.0-or-later", None, [], False),
        ("MIT AND LGPL-2.1-only", None, [], False),
        (None, "GPL", ["License :: OSI Approved :: GNU General Public License v3 (GPLv3)"], False),
        (None, "MIT", ["License :: OSI Approved :: GNU General Public License v3 (GPLv3)"], False),
        ("MPL-2.0", None, [], False),
        (None, None, [], False),
        (None, "see the file LICENSE", [], False),
    ],
)
def test_the_licence_check_can_refuse(expression, line, classifiers, fine):
    said = objection("some-package", stated(expression, line, classifiers))
    assert (said is None) == fine
    assert fine or said.startswith("some-package: its licence is ")


# Bounds, version, files ----------------------------------------------------------------------------------------------


def test_every_dependency_has_a_lower_bound():
    """`make test-lowest` runs the tests with exactly these."""
    extras = [line for lines in PROJECT["optional-dependencies"].values() for line in lines]
    for requirement in map(Requirement, [*PROJECT["dependencies"], *extras]):
        bounded = {each.operator for each in requirement.specifier} & {">=", "=="}
        assert bounded or requirement.name == "keytokens", f"{requirement} has no lower bound"


def test_the_version_stands_in_one_place():
    assert "version" in PROJECT["dynamic"]
    version = keytokens.__version__
    assert re.fullmatch(r"\d+\.\d+\.\d+", version)
    for name in ("pyproject.toml", "README.md", "CITATION.cff", "Makefile"):
        assert f'"{version}"' not in (ROOT / name).read_text("utf-8"), f"{name} holds the version too"
    sources = [file for file in (ROOT / "src").rglob("*.py") if file.name != "_version.py"]
    assert not [file for file in sources if f'"{version}"' in file.read_text("utf-8")]


def test_pythons_agree():
    least = PROJECT["requires-python"].removeprefix(">=")
    named = [c.rsplit(" ", 1)[1] for c in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", c)]
    assert min(named, key=lambda v: int(v.split(".")[1])) == least
    assert f"Python {least} or newer" in (ROOT / "README.md").read_text("utf-8")


def test_citation():
    lines = (ROOT / "CITATION.cff").read_text("utf-8").splitlines()
    top = dict(line.split(": ", 1) for line in lines if re.match(r"[a-z-]+: ", line))
    assert {"cff-version", "message", "title", "license"} <= set(top)
    assert "authors:" in lines
    assert top["license"] == PROJECT["license"]
    assert f"  - name: {PROJECT['authors'][0]['name']}" in lines


# The change log ------------------------------------------------------------------------------------------------------


def test_fragments_of_the_change_log(tmp_path):
    changes = script(ROOT / "tools" / "changes.py")
    files = changes.fragments(ROOT / "changes")
    assert all(changes.kind_of(file) and file.read_text("utf-8").strip() for file in files)
    (tmp_path / "b.fixed.md").write_text("Two lines\nbecome one.\n", "utf-8")
    (tmp_path / "a.added.md").write_text("News.\n", "utf-8")
    (tmp_path / "README.md").write_text("not a fragment", "utf-8")
    news = changes.section(changes.fragments(tmp_path))
    assert news == "### Added\n\n- News.\n\n### Fixed\n\n- Two lines become one."
    log = changes.release("# Changes\n\n## 0.1.0\n\nFirst.\n", "0.2.0", "2027-01-01", news)
    assert re.findall(r"^## .*", log, re.M) == ["## 0.2.0, 2027-01-01", "## 0.1.0"]
    assert log.endswith("- Two lines become one.\n\n## 0.1.0\n\nFirst.\n")
    (tmp_path / "c.better.md").write_text("?", "utf-8")
    with pytest.raises(ValueError, match=r"changes/c\.better\.md: must be called <name>\.<kind>\.md"):
        changes.section(changes.fragments(tmp_path))


# The audit -----------------------------------------------------------------------------------------------------------


def test_an_audit_that_was_not_made_is_not_clean():
    verdict = script(ROOT / "tools" / "audit.py").verdict
    clean = {"name": "a", "version": "1", "vulns": []}
    flawed = {"name": "b", "version": "1", "vulns": [{"id": "X-1", "fix_versions": ["1.1"]}]}
    skipped = {"name": "c", "skip_reason": "not found"}
    assert verdict(["a==1"], [clean]) == (0, ["audit: 1 packages looked up, no known vulnerability"])
    assert verdict(["a==1", "b==1"], [clean, flawed]) == (1, ["b 1: X-1, fixed in 1.1"])
    for answers in (None, [], [skipped]):
        code, (line,) = verdict(["c==1"], answers)
        assert code == 2
        assert line.endswith("not reachable; NOTHING was checked")
    code, lines = verdict(["b==1", "c==1"], [flawed, skipped])
    assert code == 2
    assert lines == ["b 1: X-1, fixed in 1.1", "audit: 1 of 2 packages could not be looked up: c"]


# What an import brings along -----------------------------------------------------------------------------------------

# pandas and pyarrow, where they are, scikit-learn imports
HEAVY = {"dask", "distributed", "fastapi", "matplotlib", "starlette", "uvicorn"}
PROVING = {"keytokens.explain", "keytokens.proof"}  # loaded with the first explanation


IMPORTS = [
    ("import keytokens", HEAVY | {"numpy", "pandas", "pyarrow", "rich", "scipy", "sklearn", "tqdm", "typer"}),
    ("import keytokens; keytokens.KeyTokenClassifier", HEAVY | PROVING | {"torch", "typer"}),
    ("import keytokens; keytokens.load", HEAVY | {"typer"}),
    ("import keytokens; keytokens.BagClassifier; keytokens.autotune", HEAVY | {"typer"}),
    ("import keytokens.app.cli.app", HEAVY),
]


def test_imports_bring_no_pictures_and_no_web():
    """One after the other in one process: what one of them brings, the next one has too."""
    code = "".join(f"{code}; print(*sys.modules)\n" for code, _ in IMPORTS)
    shown = subprocess.run([sys.executable, "-c", f"import sys\n{code}"], capture_output=True, text=True, check=True)
    for (code, absent), modules in zip(IMPORTS, shown.stdout.splitlines(), strict=True):
        assert not absent & set(modules.split()), code
