"""Known vulnerabilities of what is installed with keytokens, by pip-audit; silence of the service is not a clean bill.

    python tools/audit.py .venv/bin/python

Exit code 0: every package was looked up and none is known to be vulnerable; 1: some are; 2: not all could be looked up.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

OWN = "keytokens"  # not on the index while it is installed from a checkout


def installed(python: str) -> list[str]:
    """What that environment holds, pinned."""
    listed = subprocess.run(
        [python, "-m", "pip", "list", "--format", "json"], capture_output=True, text=True, check=True
    )
    return [f"{each['name']}=={each['version']}" for each in json.loads(listed.stdout) if each["name"] != OWN]


def look_up(pins: list[str]) -> list[dict[str, Any]] | None:
    """The answer of the advisory service for each package; None if there was none."""
    words = [sys.executable, "-m", "pip_audit", "--no-deps", "--disable-pip", "--progress-spinner", "off"]
    asked = subprocess.run(
        [*words, "--format", "json", "-r", "/dev/stdin"], input="\n".join(pins), capture_output=True, text=True
    )
    try:
        return list(json.loads(asked.stdout)["dependencies"])
    except (ValueError, KeyError):
        print(*asked.stderr.splitlines()[-1:], file=sys.stderr)
        return None


def verdict(pins: list[str], answers: list[dict[str, Any]] | None) -> tuple[int, list[str]]:
    """The exit code and what to say."""
    if answers is None:
        return 2, ["audit: the advisory service is not reachable; NOTHING was checked"]
    skipped = [each["name"] for each in answers if "skip_reason" in each]
    found = [
        f"{each['name']} {each['version']}: {flaw['id']}, fixed in {', '.join(flaw['fix_versions']) or 'no release'}"
        for each in answers
        for flaw in each.get("vulns", [])
    ]
    lost = len(pins) - (len(answers) - len(skipped))
    if lost >= len(pins):
        return 2, ["audit: the advisory service knows none of these packages: it is not reachable; NOTHING was checked"]
    if lost:
        found.append(f"audit: {lost} of {len(pins)} packages could not be looked up: {', '.join(skipped)}")
        return 2, found
    return (1, found) if found else (0, [f"audit: {len(pins)} packages looked up, no known vulnerability"])


if __name__ == "__main__":
    pins = installed(sys.argv[1])
    code, lines = verdict(pins, look_up(pins))
    print(*lines, sep="\n", file=sys.stderr if code else sys.stdout)
    sys.exit(code)
