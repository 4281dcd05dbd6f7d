"""A child that looks: questions a line each on its input, answers a line each on its output, until the input ends.

Decides nothing. It ends when its supervisor is gone, by whatever way. It writes to nothing but its output, and what a
library prints goes to the standard error, so that no word of it is taken for an answer.

    python -m ouvrage.agent.probing.child [--root DIR]
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from typing import TextIO

from ouvrage.adapters.clock import monotonic_us, now_us
from ouvrage.adapters.parent_death import end_with_the_parent
from ouvrage.agent.probing.sights import Roots, Sights, answer_line


def main(words: list[str]) -> int:
    """Serve until the input ends."""
    end_with_the_parent()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)
    root = words[words.index("--root") + 1] if "--root" in words else "/"
    sights = Sights(Roots(root))
    with suppress(BrokenPipeError):  # nobody hears it any more
        _serve(sights, answers)
    return 0


def _serve(sights: Sights, answers: TextIO) -> None:
    for line in sys.stdin:
        answers.write(
            answer_line(sights, json.loads(line), lambda: (now_us(), monotonic_us())) + "\n"
        )
        answers.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
