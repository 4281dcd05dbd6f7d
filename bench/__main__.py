"""Run every measurement in this folder, one after the other, and keep the result on request.

Each module is run as its own process, so that one does not warm the caches or fill the memory of the
next, and is shown as it speaks. With ``--write`` the words, the date and the machine go to
``docs/reference/benchmarks.md``, in place of what the same measurements said before: a number without its
machine says nothing.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "reference" / "benchmarks.md"


def main() -> int:
    """Run the named measurements, or all; 1 when one of them failed."""
    parser = argparse.ArgumentParser(
        prog="python -m bench", description="Measure speed and overhead."
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of: {', '.join(_names())}")
    parser.add_argument("--write", action="store_true", help=f"keep the result in {PAGE.name}")
    options = parser.parse_args()
    unknown = sorted(set(options.names) - set(_names()))
    if unknown:
        parser.error(f"no such measurement: {', '.join(unknown)}")
    said: dict[str, str] = {}
    failed: list[str] = []
    for name in options.names or _names():
        print(f"--- {name}", flush=True)
        code, said[name] = _measure(name)
        if code:
            failed.append(name)
    if options.write and not failed:
        PAGE.write_text(
            _page({**_before(), **{name: _dated(each) for name, each in said.items()}}), "utf-8"
        )
        print(f"kept in {PAGE.relative_to(HERE.parent)}")
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def _names() -> list[str]:
    files = [path.stem for path in HERE.glob("*.py") if not path.stem.startswith("_")]
    return sorted([*files, *(path.parent.name for path in HERE.glob("*/__main__.py"))])


def _measure(name: str) -> tuple[int, str]:
    """Exit code and output of one measurement, shown while it runs."""
    lines: list[str] = []
    command = [sys.executable, "-u", "-m", f"bench.{name}"]
    with subprocess.Popen(command, cwd=HERE.parent, stdout=subprocess.PIPE, text=True) as running:
        for line in running.stdout or ():
            print(line, end="", flush=True)
            lines.append(line.rstrip())
    return running.returncode, "\n".join(lines)


def _before() -> dict[str, str]:
    """What the page has of each measurement."""
    parts = PAGE.read_text("utf-8").split("\n## ")[1:] if PAGE.is_file() else []
    return {name: words.strip() for name, _, words in (part.partition("\n") for part in parts)}


def _dated(words: str) -> str:
    """What a measurement said, with its day and its machine."""
    day, load = datetime.now(timezone.utc).date(), os.getloadavg()[1]
    return (
        f"Measured on {day} with Python {platform.python_version()} on {_machine()}; "
        f"{load:.1f} programs wanted a core meanwhile.\n\n```text\n{words.strip()}\n```"
    )


def _page(said: dict[str, str]) -> str:
    head = (
        "# Benchmarks\n\n"
        "Written by `make bench WRITE=1`. Ratios are taken within one run, on one machine."
    )
    parts = [f"## {name}\n\n{words}" for name, words in sorted(said.items())]
    return "\n\n".join([head, *parts]) + "\n"


def _machine() -> str:
    model = "an unknown processor"
    described = Path("/proc/cpuinfo")
    if described.is_file():
        for line in described.read_text("utf-8").splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    return f"{os.cpu_count()} cores of {model}, Linux {platform.release()}"


if __name__ == "__main__":
    sys.exit(main())
