"""Decide upon many simulated owners and score the answers and their intervals against the truth.

    python -m bench.decisions [--seeds 60] [--workers 2] [--write]

``--write`` keeps the page in ``docs/reference/decisions-scored.md`` and takes at least 200 seeds. Exit
code 1 where an interval of 90 % holds the truth less than 85 or more than 95 times in a hundred.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bench.decisions.page import LEAST, MOST, page
from bench.decisions.scoring import FIGURES, coverage, outcomes

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "decisions-scored.md"
WINDOWS = (90, 30)
ENOUGH = 200


def main() -> int:
    """Score, print, keep."""
    parser = argparse.ArgumentParser(prog="python -m bench.decisions")
    parser.add_argument("--seeds", type=int, default=60)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--write", action="store_true", help=f"keep the result in {PAGE.name}")
    options = parser.parse_args()
    if options.write and options.seeds < ENOUGH:
        parser.error(f"the page is written from {ENOUGH} seeds at least")
    seeds = range(options.first, options.first + options.seeds)
    found = {window: outcomes(seeds, window, options.workers) for window in WINDOWS}
    text = page(found)
    print(text.partition("## ")[2])
    if options.write:
        PAGE.write_text(text, "utf-8")
        print(f"kept in {PAGE.name}")
    shares = [held / total for scored in found.values() for figure in FIGURES
              for held, total in [coverage(scored, figure)]]  # fmt: skip
    return int(options.seeds >= ENOUGH and not all(LEAST <= share <= MOST for share in shares))


if __name__ == "__main__":
    sys.exit(main())
