"""A page of the console as HTML and as JSON, in the reader's language.

Decides nothing but form. The page loads its style and one script of ours from the same server and nothing else; without the script
it says the same, once. Words of the pages themselves are translated by ``_``; names that people gave are shown as they are.
"""

from __future__ import annotations

import json
from functools import lru_cache
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

from jinja2 import Environment
from markupsafe import Markup

from ouvrage.console import svg
from ouvrage.console.blocks import ConsolePage, Picture, Reader, plain
from ouvrage.console.page import environment_of_templates
from ouvrage.console.translated import translator

STATIC = {
    "console.css": "text/css; charset=utf-8",
    "live.js": "text/javascript; charset=utf-8",
    "mark.svg": "image/svg+xml",
}
"""The files that a page loads, and what they are."""
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""What every page is sent with."""


def console_html(page: ConsolePage, reader: Reader) -> str:
    """The page as one HTML document."""
    return (
        _environment(reader.language)
        .get_template("console.html.j2")
        .render(page=page, reader=reader, twin=twin_of(reader.path), patterns=_patterns(page))
    )


def console_json(page: ConsolePage) -> str:
    """The page's ``.json`` twin: the same words and numbers, without drawings."""
    return json.dumps(plain(page), ensure_ascii=False, indent=1)


def twin_of(path: str) -> str:
    """The address of a page's JSON twin: ``/jobs?all=1`` has ``/jobs.json?all=1``."""
    parts = urlsplit(path)
    stem = parts.path.rstrip("/") or "/today"
    return f"{stem}.json{'?' + parts.query if parts.query else ''}"


def static_file(name: str) -> bytes:
    """The bytes of one of ``STATIC``."""
    assert name in STATIC
    return (files("ouvrage.console") / "static" / name).read_bytes()


def _patterns(page: ConsolePage) -> Markup:
    drawn = any(isinstance(block, Picture) for block in page.blocks)
    return Markup(svg.patterns()) if drawn else Markup("")


@lru_cache(maxsize=4)
def _environment(language: str) -> Environment:
    environment = environment_of_templates()
    words: dict[str, Any] = {"_": translator(language)}
    environment.globals.update(words)
    return environment
