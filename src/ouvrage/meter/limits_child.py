"""The child that asks the driver about power limits, or sets one: one question, one line, the end.

It exists to be lost, as the child that reads GPUs does: the driver may hang it, kill it or refuse.
It decides nothing; who asked waits so long and no longer (``meter.limits``).
"""

from __future__ import annotations

import dataclasses
import json
import signal
import sys
from collections.abc import Sequence
from typing import Any

from ouvrage.adapters.gpu_port import Unavailable
from ouvrage.adapters.limit_port import LimitLibrary, Refused


def answer(library: LimitLibrary, arguments: Sequence[str]) -> dict[str, Any]:
    """``look``, or ``set UUID MILLIWATTS``: what the driver said, or why it said nothing."""
    try:
        library.open()
        if arguments[0] == "look":
            return {"cards": [dataclasses.asdict(card) for card in library.look()]}
        return {"limit_mw": library.set(arguments[1], int(arguments[2]))}
    except (Refused, Unavailable) as error:
        return {"refused": error.kind, "words": str(error)}


def main(arguments: Sequence[str]) -> int:
    """Answer one question on standard output."""
    from ouvrage.adapters.nvml_limits import NvmlLimits

    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # who asked may have held its own signals back
    sys.stdout.write(json.dumps(answer(NvmlLimits(), arguments)) + "\n")
    return 0
