"""``python -m ouvrage.integrations NAME[=WHERE] REPORT.json``: log a report that was kept.

Decides nothing but how the arguments are read; what is logged and where is decided by ``send``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from ouvrage.integrations import send


def main(arguments: list[str]) -> int:
    """Log one report; 0, or 2 with the reason on stderr."""
    if len(arguments) != 2:
        sys.stderr.write("usage: python -m ouvrage.integrations NAME[=WHERE] REPORT.json\n")
        return 2
    try:
        report = json.loads(Path(arguments[1]).read_text("utf-8"))
        name, _, where = arguments[0].partition("=")
        sys.stdout.write(send.send(name, where, report) + "\n")
    except (OSError, ValueError, send.NotSent) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
