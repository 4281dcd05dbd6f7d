"""What a verb says where the parts of Ouvrage that serve and speak HTTP are not installed.

Decides only the words: the meter and the books need none of these packages, so that most homes are without them.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from ouvrage.base.errors import OuvrageError

_PACKAGES = frozenset(
    [
        "argon2",
        "authlib",
        "cryptography",
        "fastapi",
        "httpx2",
        "multipart",
        "pydantic",
        "stamina",
        "starlette",
        "structlog",
        "uvicorn",
        "yaml",
    ]
)


@contextmanager
def server_extra() -> Generator[None]:
    """Turn a missing package of the extra ``server`` into ``OuvrageError`` ``install/server``."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _PACKAGES:
            raise
        raise OuvrageError(
            "install/server",
            f"this needs {error.name}, which is not installed",
            hint="pip install 'ouvrage[server]'",
        ) from error
