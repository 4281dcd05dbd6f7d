"""Makes this process the parent of every descendant that loses its own."""

from __future__ import annotations

_PR_SET_CHILD_SUBREAPER = 36


def become() -> bool:
    """Ask the kernel; False where it refuses or cannot be asked, and orphans leave the tree."""
    try:
        import ctypes
    except ImportError:
        return False
    try:
        prctl = ctypes.CDLL(None).prctl
    except (OSError, AttributeError):
        return False
    return prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
