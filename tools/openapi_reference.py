"""Write ``docs/reference/openapi.json``, the server's interface, from the application itself.

Keys are sorted and each value has a line, so that a change of the interface is a change that a reader sees. Each operation says in
``x-action`` which right it needs; the roles behind it stand in ``server/authorise.py``.
"""

from __future__ import annotations

import json
import sys

from generated import keep

from ouvrage.server.app import routes_app


def main() -> int:
    """Write or compare the file."""
    document = routes_app().openapi()
    text = json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False)
    return keep("docs/reference/openapi.json", text)


if __name__ == "__main__":
    sys.exit(main())
