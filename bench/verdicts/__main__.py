"""Run a set of programs with injected causes under the meter and score its verdicts.

    python -m bench.verdicts [--set development|held-out] [--only TEXT] [--write]

Needs root, since causes are injected by control groups, network namespaces and swap. Waits for a
quiet machine before each run, takes precedence over other programs by its priority, and measures
how much of the machine they used meanwhile; a disturbed run is repeated twice and then marked. Exit code 1 where less than nine of ten are right.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.verdicts.cases import DEVELOPMENT, HELD_OUT, Case
from bench.verdicts.injections import Impossible, around
from bench.verdicts.made import forget, prepare
from bench.verdicts.page import page, words
from bench.verdicts.scoring import BAR, CROWDED, Outcome, score

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reference" / "verdicts.md"
SETS = {"development": DEVELOPMENT, "held-out": HELD_OUT}
SECONDS = 4.0
CARD_SECONDS = 5.0
"""The card is read by a process of its own, which takes a while to begin."""
PRIORITY = -15
TRIES = 3
QUIET_S, PATIENCE_S = 0.4, 20.0
TICKS = os.sysconf("SC_CLK_TCK")


def main() -> int:
    """Run a set and say how it went."""
    parser = argparse.ArgumentParser(prog="python -m bench.verdicts", description=__doc__)
    parser.add_argument("--set", choices=SETS, default="held-out", dest="name")
    parser.add_argument("--only", default="", help="programs whose words contain this")
    parser.add_argument("--tries", type=int, default=TRIES, help="runs of a disturbed program")
    parser.add_argument("--patience", type=float, default=PATIENCE_S, help="for a quiet machine, s")
    parser.add_argument("--write", action="store_true", help=f"keep the result in {PAGE.name}")
    options = parser.parse_args()
    if os.geteuid():
        print("left out: injecting causes needs root")
        return 0
    cases = [case for case in SETS[options.name] if options.only in f"{case.program} {case.cause}"]
    with _precedence(), tempfile.TemporaryDirectory(dir="/var/tmp") as held:
        outcomes, impossible = run_all(cases, Path(held), options.tries, options.patience)
    held_score = score(outcome for outcome in outcomes if not outcome.case.control)
    print(words(held_score))
    if options.write:
        PAGE.write_text(page(outcomes, impossible), "utf-8")
        print(f"kept in {PAGE.relative_to(ROOT)}")
    return int(held_score.share < BAR)


def run_all(
    cases: Sequence[Case], directory: Path, tries: int, patience: float
) -> tuple[list[Outcome], dict[str, str]]:
    """The outcome of each case that can be made here, and why the others cannot."""
    prepare(directory)
    outcomes: list[Outcome] = []
    impossible: dict[str, str] = {}
    for case in cases:
        try:
            outcome = measured(case, directory, tries, patience)
        except Impossible as error:
            impossible[f"`{case.program}` with {case.cause}"] = str(error)
            print(f"left out  {case.program}: {error}", flush=True)
            continue
        outcomes.append(outcome)
        _tell(outcome)
    return outcomes, impossible


def measured(case: Case, directory: Path, tries: int, patience: float) -> Outcome:
    """The outcome of one case; of a disturbed one, the least disturbed of several tries."""
    best: Outcome | None = None
    for number in range(1, tries + 1):
        _wait_for_quiet(patience)
        outcome = _once(case, directory, number)
        if best is None or outcome.others < best.others:
            best = outcome
        if not best.disturbed:
            break
    assert best is not None
    return best


def _once(case: Case, directory: Path, number: int) -> Outcome:
    home = directory / "home"
    if "memory_mb" in case.limits:
        forget(directory)
    busy, own = _busy_s(), _children_s()
    started = time.monotonic()
    with around(case.limits, directory) as place:
        environment = _environment(home) | place.environment
        work = [sys.executable, "-m", "bench.verdicts.programs", *case.program.split()]
        work += [f"seconds={CARD_SECONDS if 'card' in case.limits else SECONDS:g}", *place.words]
        meter = [sys.executable, "-m", "ouvrage", "run", "--quiet", "--", *work]
        done = subprocess.run(
            [*place.prefix, *meter], cwd=directory, env=environment, check=False,
            stdin=subprocess.DEVNULL, capture_output=True, text=True,
        )  # fmt: skip
    if done.returncode:
        said = done.stderr.strip().splitlines()
        raise Impossible(f"the program ended with {done.returncode}: {said[-1] if said else ''}")
    wall = time.monotonic() - started
    others = (_busy_s() - busy - (_children_s() - own)) / wall / (os.cpu_count() or 1)
    return _outcome(case, _report(home), max(0.0, others), number)


def _outcome(case: Case, report: dict[str, Any], others: float, tries: int) -> Outcome:
    why = report["why"]
    steady = report["steady"]
    total = sum(steady.values()) or 1
    return Outcome(
        case=case,
        verdict=why["verdict"],
        share=why["share"] if why["bottleneck"] else steady[why["verdict"]] / total,
        evidence=why["evidence"],
        times={key: value / total for key, value in steady.items()},
        others=others,
        tries=tries,
    )


def _environment(home: Path) -> dict[str, str]:
    """That of a person with one thread for each process's linear algebra, and a home of its own."""
    left_out = ("OUVRAGE_SOCKET", "OUVRAGE_STORE")
    kept = {name: value for name, value in os.environ.items() if name not in left_out}
    paths = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
    return kept | {"OUVRAGE_HOME": str(home), "PYTHONPATH": paths, "OPENBLAS_NUM_THREADS": "1"}


def _report(home: Path) -> dict[str, Any]:
    words = [sys.executable, "-m", "ouvrage", "report", "last", "--json"]
    done = subprocess.run(
        words, env=_environment(home), check=True, capture_output=True, text=True
    )  # fmt: skip
    return json.loads(done.stdout)


def _busy_s() -> float:
    """Seconds that all processors of the machine were busy or stolen."""
    ticks = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return (sum(ticks) - ticks[3] - ticks[4]) / TICKS


def _children_s() -> float:
    """Processor seconds of everything that was started here and has ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


@contextlib.contextmanager
def _precedence() -> Iterator[None]:
    """By priority, and by that of the session where the kernel weighs sessions first."""
    was = os.getpriority(os.PRIO_PROCESS, 0)
    session = Path("/proc/self/autogroup")
    held = session.read_text().split()[-1] if session.is_file() else None
    os.setpriority(os.PRIO_PROCESS, 0, PRIORITY)
    if held is not None:
        session.write_text(str(PRIORITY))
    try:
        yield
    finally:
        os.setpriority(os.PRIO_PROCESS, 0, was)
        if held is not None:
            session.write_text(held)


def _wait_for_quiet(patience: float) -> None:
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        busy = _busy_s()
        time.sleep(QUIET_S)
        if (_busy_s() - busy) / QUIET_S / (os.cpu_count() or 1) < CROWDED:
            return


def _tell(outcome: Outcome) -> None:
    case = outcome.case
    told = sorted(outcome.times.items(), key=lambda pair: -pair[1])
    shares = " ".join(f"{name}={100 * share:.0f}" for name, share in told if share >= 0.01)
    note = f" others {100 * outcome.others:.0f} %" if outcome.disturbed else ""
    print(
        f"{outcome.mark:<8} {case.program} ({case.cause}): expected {case.expected}, "
        f"found {outcome.verdict}; {shares}{note}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
