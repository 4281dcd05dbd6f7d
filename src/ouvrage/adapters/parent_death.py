"""Ends this process when the one that started it is gone, however that ended.

A child that measures or reads must not outlive whoever wanted to know. The kernel sends SIGTERM; where it
cannot be asked the child ends as it would have, and nothing else changes.
"""

from __future__ import annotations

import contextlib
import signal

_PR_SET_PDEATHSIG = 1


def end_with_the_parent() -> None:
    """Ask the kernel for SIGTERM when the thread that started this process is gone."""
    with contextlib.suppress(ImportError, OSError, AttributeError):
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
