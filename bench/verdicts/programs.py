"""The programs of the scored set: each does one real kind of work for a while, then ends.

    python -m bench.verdicts.programs KIND [NAME=VALUE ...]

Every one takes ``seconds`` and ``seed``. Only the module that holds the kind is loaded, so that a
small program stays small.
"""

from __future__ import annotations

import importlib
import sys

from bench.verdicts.working import PROGRAMS

MODULES = ("programs_alone", "programs_fed", "programs_net")


def main() -> int:
    """Run the kind of work that the words name."""
    kind, *rest = sys.argv[1:]
    for module in MODULES:
        importlib.import_module(f"bench.verdicts.{module}")
        if kind in PROGRAMS:
            break
    PROGRAMS[kind](dict(word.split("=", 1) for word in rest))
    return 0


if __name__ == "__main__":
    sys.exit(main())
