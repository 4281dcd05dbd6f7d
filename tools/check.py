"""Run the checks that need no test runner, two at a time, and show only what failed.

Decides which checks there are and what ``quick`` leaves out. Each check is a command that ends with
0 when all is well; its words are printed only when it is not, so that a green run is a short list.
"""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
SPHINX = "-m sphinx --fresh-env --fail-on-warning --keep-going --nitpicky --quiet -b html docs docs/_build/html"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """``name`` in the list, ``command`` to run, and whether ``make quick`` runs it too."""

    name: str
    command: tuple[str, ...]
    quick: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What one check said, and how long it took."""

    check: Check
    code: int
    words: str
    seconds: float


def _python(arguments: str) -> tuple[str, ...]:
    return (sys.executable, *arguments.split())


def _tool(name: str, *arguments: str) -> tuple[str, ...]:
    return (str(BIN / name), *arguments)


CHECKS = (
    Check(name="types", command=_tool("basedpyright", "--pythonpath", sys.executable)),
    Check(name="format", command=_python("-m ruff format --check --quiet --diff ."), quick=True),
    Check(name="lint", command=_python("-m ruff check --quiet ."), quick=True),
    Check(name="layers", command=_tool("lint-imports", "--no-cache"), quick=True),
    Check(name="generated: facts", command=_python("tools/facts_reference.py --check"), quick=True),
    Check(
        name="generated: health", command=_python("tools/health_reference.py --check"), quick=True
    ),
    Check(name="generated: laws", command=_python("tools/laws_reference.py --check")),
    Check(name="generated: commands", command=_python("tools/cli_reference.py --check")),
    Check(name="generated: interface", command=_python("tools/openapi_reference.py --check")),
    Check(name="documentation", command=_python(SPHINX)),
)


def run(check: Check) -> Result:
    """Run one check from the root of the repository."""
    began = time.monotonic()
    done = subprocess.run(
        check.command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    words = done.stdout.decode("utf-8", "replace")
    return Result(check=check, code=done.returncode, words=words, seconds=time.monotonic() - began)


def main() -> int:
    """Run the checks of the named tier; 1 when any failed."""
    quick = sys.argv[1:] == ["quick"]
    wanted = [check for check in CHECKS if check.quick or not quick]
    failed: list[Result] = []
    with ThreadPoolExecutor(max_workers=2) as pool:
        for result in pool.map(run, wanted):
            state = "failed" if result.code else "ok"
            print(f"check  {result.check.name:<20} {state}  {result.seconds:.1f} s", flush=True)
            if result.code:
                failed.append(result)
    for result in failed:
        print(f"\n--- {result.check.name}: {' '.join(result.check.command)}\n{result.words}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
