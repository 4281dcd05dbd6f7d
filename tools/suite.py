"""The whole suite, and a second look at what fails in it: ``python tools/suite.py WORKERS``.

Decides that up to three tests that fail among all the others are run once more, one after the other and alone. What fails again fails
the suite. What passes then is told at the very end by its name, with the advice to look at it: it depends on its neighbours, on the
machine's load or on chance, and one of the three is a defect, of the test or of the product. More than three are never run again.
Why a suite that starts servers and kills them is not held up by one test that leans on the clock: decision 0286.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FAILED = ROOT / ".pytest_cache" / "v" / "cache" / "lastfailed"
MOST = 3
_TESTS_FAILED = 1


def pytest(*words: str) -> int:
    """Run pytest here; its exit code."""
    return subprocess.run([sys.executable, "-m", "pytest", "-q", *words], cwd=ROOT).returncode


def failed() -> list[str]:
    """The tests that the last run left failed, by name."""
    return sorted(json.loads(FAILED.read_text())) if FAILED.exists() else []


def main(workers: str) -> int:
    """Run all, then what failed; 0 where each test passed in one of the two."""
    FAILED.unlink(missing_ok=True)
    code = pytest("-n", workers, "-m", "not soak", "tests")
    unsteady = failed()
    if code != _TESTS_FAILED or not 0 < len(unsteady) <= MOST:
        return code
    print(f"\n{len(unsteady)} failed among the others; now alone:", flush=True)
    again = pytest(*unsteady)
    for name in unsteady if again == 0 else ():
        print(f"unsteady: {name} failed, and passed alone: look for what it leans on")
    return again


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
