"""When and where the figures are measured: `python -m benchmarks.machine`, the first step of `make bench`."""

import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks.measure import options_of, write_csv

PACKAGES = ("keytokens", "numpy", "scipy", "scikit-learn", "fasttext-community", "lime", "shap", "pyarrow")


def processor() -> str:
    """The name of the processor, as the system tells it."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    named = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()


def memory() -> str:
    try:
        return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 1e9:.0f} GB"
    except (ValueError, OSError, AttributeError):
        return "unknown"


def described() -> dict[str, str]:
    load = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"
    facts = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "processor": processor(),
        "cores": str(os.cpu_count()),
        "memory": memory(),
        "system": f"{platform.system()} {platform.release()}",
        "load average before": load,
        "python": platform.python_version(),
    }
    for package in PACKAGES:
        try:
            facts[package] = version(package)
        except PackageNotFoundError:
            facts[package] = "not installed"
    return facts


def main(arguments: Sequence[str] | None = None) -> None:
    options = options_of(__doc__).parse_args(arguments)
    facts = described()
    write_csv(options.output / "machine.csv", [{"what": what, "value": value} for what, value in facts.items()])
    print(", ".join(f"{what} {value}" for what, value in facts.items()))


if __name__ == "__main__":
    main()
