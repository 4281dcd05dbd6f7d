"""Refusals as a server tells them: the one error of the program, with the status it is sent under.

Decides which status a refusal gets and the one shape of every error's body. What is refused, and in which words, is decided
where it is refused; an organisation that somebody may not know of is told to be unknown.
"""

from __future__ import annotations

from typing import Any

from ouvrage.base.errors import OuvrageError

_UNAVAILABLE = ("store/busy", "store/unreachable", "store/disk-full", "store/read-only")
UNREADABLE = 422
"""The status of a refusal that names no other: something in the request does not make sense."""


class Refused(OuvrageError):
    """A refusal with an HTTP ``status``, the ``field`` it is about, and seconds to wait (429, 503)."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        status: int,
        hint: str | None = None,
        field: str | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(code, message, hint=hint)
        self.status = status
        self.field = field
        self.retry_after = retry_after


class CutOff(Exception):
    """An answer that has begun and ends before it is whole: its connection is cut, so that its reader knows. No failure of ours."""


def status_of(error: OuvrageError) -> int:
    """The status under which a refusal is sent."""
    if isinstance(error, Refused):
        return error.status
    if error.code in _UNAVAILABLE:
        return 503
    return 500 if error.code.startswith("store/") else UNREADABLE


def body_of(error: OuvrageError) -> dict[str, Any]:
    """The body of every error: code, message, hint and the field it is about; absent ones are null."""
    where = error.where[0] if error.where else None
    field = error.field if isinstance(error, Refused) else where
    return {
        "error": {
            "code": error.code,
            "message": error.message,
            "hint": error.hint,
            "field": field,
        }
    }


def bad_request(code: str, message: str, *, hint: str, field: str | None = None) -> Refused:
    """400: the request is not put as this interface is spoken to."""
    return Refused(code, message, status=400, hint=hint, field=field)


def who_are_you(message: str = "this needs a token that is known and still valid") -> Refused:
    """401: nobody known is asking."""
    return Refused(
        "token/unknown",
        message,
        status=401,
        hint="ouvrage login; or name a file that holds a token: OUVRAGE_TOKEN_FILE",
    )


def may_not(action: str, roles: tuple[str, ...]) -> Refused:
    """403: somebody known asks for what their roles or the token's scopes do not allow."""
    return Refused(
        "right/missing",
        f"you may not do this: {action}",
        status=403,
        hint=f"allowed to the roles {', '.join(roles)}, with a token whose scopes include it",
    )


def unknown(what: str, name: str | None = None, *, field: str | None = None) -> Refused:
    """404: there is no such thing, or none that the asker may know of; ``name`` is as it was asked for."""
    called = f" {name!r}" if name else ""
    return Refused(
        f"{what}/unknown",
        f"there is no {what}{called} that you may see",
        status=404,
        hint="names and ids are listed by the command or address without one",
        field=field,
    )


def conflict(code: str, message: str, *, hint: str, field: str | None = None) -> Refused:
    """409: what stands now does not allow it."""
    return Refused(code, message, status=409, hint=hint, field=field)


def unreadable(code: str, message: str, *, hint: str, field: str | None = None) -> Refused:
    """422: a value that makes no sense here."""
    return Refused(code, message, status=UNREADABLE, hint=hint, field=field)


def too_many(code: str, message: str, seconds: int) -> Refused:
    """429: again later, and when."""
    return Refused(
        code, message, status=429, hint=f"wait {seconds} s and try again", retry_after=seconds
    )
