"""Passwords, tokens and keys: how they look, and how they are proved without being kept.

Decides the form of a secret (``ouvp_ID_SECRET``: what it is, which row it belongs to, 256 bits that nobody can guess), what is
stored of it (argon2id, never the secret) and how much work a password costs. A token needs no stretching, because it cannot
be guessed; its argon2 is set low, so that a thousand agents may ask every few seconds.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from functools import lru_cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from ouvrage.base.errors import OuvrageError
from ouvrage.server.context import Platform

KINDS = {"token": "ouvp", "session": "ouvs", "node key": "ouvn", "enrolment": "ouve"}
SECRET = re.compile(r"(ouv[psne])_([0-9a-f]{32})_([A-Za-z0-9_-]{43})")
"""Every secret that this server ever made, wherever it turns up."""

SHORTEST_PASSWORD = 12
LONGEST_PASSWORD = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """A new secret: the ``id`` of its row, the ``text`` to hand out once, the ``hash`` to keep."""

    id: str
    text: str
    hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Presented:
    """A secret that somebody showed, taken apart; nothing is proved yet."""

    kind: str
    id: str
    secret: str


def new_secret(platform: Platform, kind: str) -> Secret:
    """A secret of a kind in ``KINDS``."""
    secret = letters(platform.chance(32))
    id_ = platform.ids()
    return Secret(id=id_, text=f"{KINDS[kind]}_{id_}_{secret}", hash=_tokens().hash(secret))


def presented(text: str) -> Presented | None:
    """What a text claims to be; None where it has not the form of a secret of ours."""
    found = SECRET.fullmatch(text.strip())
    if found is None:
        return None
    kind = next(name for name, prefix in KINDS.items() if prefix == found[1])
    return Presented(kind=kind, id=found[2], secret=found[3])


def proves(shown: Presented, kept: str) -> bool:
    """Whether the secret shown is the one of which ``kept`` is the hash."""
    try:
        return _tokens().verify(kept, shown.secret)
    except (VerificationError, InvalidHashError):
        return False


def new_password(platform: Platform) -> str:
    """A password that nobody can guess, to be shown once: 120 bits in groups that can be typed."""
    letters = base64.b32encode(platform.chance(15)).decode("ascii").lower()
    return "-".join(letters[i : i + 6] for i in range(0, 24, 6))


def check_password(password: str) -> None:
    """Raise ``OuvrageError`` ``password/weak`` for one that is too short, too long or of one letter."""
    if not SHORTEST_PASSWORD <= len(password) <= LONGEST_PASSWORD or len(set(password)) < 4:
        raise OuvrageError(
            "password/weak",
            f"a password has {SHORTEST_PASSWORD} to {LONGEST_PASSWORD} characters, not all alike",
            hint="several words make a good one",
        )


def password_hash(platform: Platform, password: str) -> str:
    """What is kept of a password."""
    return _passwords(platform.settings.password_cost).hash(password)


def password_holds(platform: Platform, password: str, kept: str | None) -> bool:
    """Whether a password is the one kept. Where none is kept the same work is done, and the answer is no."""
    hasher = _passwords(platform.settings.password_cost)
    try:
        return hasher.verify(kept or _nobody(hasher), password) and kept is not None
    except (VerificationError, InvalidHashError):
        return False


@lru_cache(maxsize=8)
def _passwords(cost: tuple[int, int, int]) -> PasswordHasher:
    memory, passes, lanes = cost
    return PasswordHasher(memory_cost=memory, time_cost=passes, parallelism=lanes)


@lru_cache(maxsize=1)
def _tokens() -> PasswordHasher:
    return PasswordHasher(memory_cost=256, time_cost=1, parallelism=1)


@lru_cache(maxsize=8)
def _nobody(hasher: PasswordHasher) -> str:
    return hasher.hash("nobody has this password")


def letters(secret: bytes) -> str:
    """Bytes as letters, digits, hyphens and underscores."""
    return base64.urlsafe_b64encode(secret).rstrip(b"=").decode("ascii")
