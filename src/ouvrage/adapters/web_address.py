"""Whether a text is an address on the web that may be asked or posted to.

Decides the two schemes that are understood, and that no secret stands in an address: it would not be sent, and would be
shown in every list and log. Nothing is looked up and nobody is asked.
"""

from __future__ import annotations

from urllib.parse import urlsplit


def address_fault(url: str) -> str | None:
    """Why a text is no address to post to; None where it is one."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        return str(error)
    if parts.scheme not in ("http", "https"):
        return "it does not begin with http:// or https://"
    if parts.username is not None:
        return "it holds a user or a password, which would not be sent"
    if not parts.hostname or not url.isascii() or any(c <= " " for c in url):
        return "it names no host, or holds what must be escaped"
    return None
