"""Write ``docs/reference/laws.md`` from the laws that ``ouvrage verify`` runs.

The statements are those that a breach is reported under, so the page and the command cannot say
different things. A layer without laws yet simply does not appear.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from generated import keep

from ouvrage.ledger.laws import Law
from ouvrage.store.audit import audit
from ouvrage.store.store import open_store

HEAD = """\
<!-- Generated from the layers' LAWS by tools/laws_reference.py; do not edit. -->

# Laws, one by one

`ouvrage verify` checks each of these over everything recorded and names the first that is broken.
[Why there are laws](../concepts/laws.md).
"""


def main() -> int:
    """Write or compare the page."""
    rows = [f"| `{law.name}` | {law.statement} |" for law in _laws()]
    table = "\n".join(["| law | what must hold |", "| --- | --- |", *rows])
    return keep("docs/reference/laws.md", f"{HEAD}\n{table}")


def _laws() -> list[Law]:
    """What an audit of an empty store goes through, the store's own laws included."""
    with tempfile.TemporaryDirectory() as home, open_store(Path(home) / "empty.db") as store:
        return [checked.law for checked in audit(store, Path(home)).checked]


if __name__ == "__main__":
    sys.exit(main())
