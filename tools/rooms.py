"""How large each room of the house is, and which rooms it imports: `python tools/rooms.py [--arrows]`.

A room is a folder or a module directly below `src/keytokens`, or with `--below NAME` below that folder. Code lines are
those that are not blank, a comment or a part of a docstring. Exported names are those in `__all__`.
"""

import argparse
import ast
import io
import tokenize
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1] / "src" / "keytokens"
SKIPPED = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)


def code_lines(source: str) -> int:
    """Lines that hold more than white space, a comment or a docstring."""
    tree = ast.parse(source)
    holders = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    texts = [node.body[0] for node in ast.walk(tree) if isinstance(node, holders) and ast.get_docstring(node, False)]
    silent = {line for text in texts for line in range(text.lineno, (text.end_lineno or text.lineno) + 1)}
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    lines = {line for token in tokens if token.type not in SKIPPED for line in range(token.start[0], token.end[0] + 1)}
    return len(lines - silent)


def exported(tree: ast.Module) -> int:
    """Names in `__all__`."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(getattr(target, "id", "") == "__all__" for target in node.targets):
            return len(getattr(node.value, "elts", []))
    return 0


def imported(tree: ast.Module, inside: tuple[str, ...]) -> set[str]:
    """The modules of keytokens that one imports, as paths below the package; `inside` is the package it lies in."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.startswith("keytokens.")}
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(("keytokens", *inside)[: len(inside) + 2 - node.level]) if node.level else ""
            module = ".".join(part for part in (base, node.module) if part)
            found |= {module} if node.module else {f"{module}.{alias.name}" for alias in node.names}
    return {name.removeprefix("keytokens.") for name in found if name.startswith("keytokens.")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--below", default="", help="a folder of the package, whose parts are the rooms")
    parser.add_argument("--arrows", action="store_true", help="say which rooms each room imports")
    options = parser.parse_args()
    root = ROOT / options.below
    prefix = tuple(part for part in options.below.split("/") if part)
    sizes: dict[str, Counter[str]] = {}
    arrows: dict[str, set[str]] = {}
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        room, source = parts[0], path.read_text("utf-8")
        tree = ast.parse(source)
        counts = {"lines": source.count("\n"), "code": code_lines(source), "files": 1, "names": exported(tree)}
        sizes.setdefault(room, Counter()).update(counts)
        inside = (*prefix, *parts[:-1])
        others = {
            tuple(name.split("."))[len(prefix)]
            for name in imported(tree, inside)
            if name.split(".")[: len(prefix)] == list(prefix) and len(name.split(".")) > len(prefix)
        }
        arrows.setdefault(room, set()).update(others - {room})
    columns = ("lines", "code", "files", "names")
    print(f"{'room':14}" + "".join(f"{column:>8}" for column in columns))
    for room, counts in sizes.items():
        print(f"{room:14}" + "".join(f"{counts[column]:8,}" for column in columns), end="")
        print("  -> " + ", ".join(sorted(arrows[room])) if options.arrows and arrows[room] else "")
    total = sum(sizes.values(), Counter())
    print(f"{'all':14}" + "".join(f"{total[column]:8,}" for column in columns))


if __name__ == "__main__":
    main()
