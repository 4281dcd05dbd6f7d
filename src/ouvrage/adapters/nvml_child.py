"""Asking NVIDIA's library in a process of its own: rows of values by name, or why there are none.

Decides how the child answers and what its silence means. Any call of the library may block for ever or end the process,
so whoever wants rows starts a module as a child under a deadline; which calls give the rows is that module's.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from typing import Any, cast

from ouvrage.adapters.gpu_port import Unavailable
from ouvrage.adapters.health_sources import NotTold, within_deadline

Row = dict[str, "int | str | None"]


def asked(module: str, deadline_s: float) -> list[Row]:
    """The rows that ``python -m MODULE`` answers. Raises ``NotTold``, also where it hangs or crashes."""
    code, text = within_deadline([sys.executable, "-m", module], deadline_s)
    try:
        answer = json.loads(text)
    except ValueError as error:
        raise NotTold(f"the GPU library ended its process (exit {code})") from error
    if isinstance(answer, dict):
        raise NotTold(str(cast("dict[str, Any]", answer).get("fault")))
    return cast("list[Row]", answer)


def answered(rows: Callable[[], Sequence[Row]]) -> int:
    """In the child: print the rows as JSON, or why there are none."""
    try:
        answer: object = rows()
    except Unavailable as error:
        answer = {"fault": f"the GPU library cannot be used: {error}"}
    sys.stdout.write(json.dumps(answer))
    return 0
