"""The secrets of a fleet in its owner's home: made once, read by the owner alone, and in no fact.

Decides where they lie and that two commands at once agree on one key: a file appears whole or not at all, and whoever comes second
reads the first one's. Another key would part every host from every other.
"""

from __future__ import annotations

from pathlib import Path

from ouvrage.adapters.clock import random_bytes
from ouvrage.adapters.home import make_private, write_once
from ouvrage.base.errors import OuvrageError
from ouvrage.fleet.plan import Keys

_LENGTHS = {"munge.key": 1024, "jwt_hs256.key": 32, "accounting.password": 48}


def keys_dir(home: Path) -> Path:
    """Where the keys of a home's fleet lie."""
    return home / "fleet" / "keys"


def keys_of(home: Path, *, make: bool) -> Keys | None:
    """The keys; None where there are none yet and none are to be made.

    Raises ``OuvrageError`` ``fleet/keys`` for one that cannot be read or has another length than it was made with.
    """
    place = keys_dir(home)
    if not make and not place.is_dir():
        return None
    if make:
        make_private(make_private(home / "fleet") / "keys")
    found = [_key(place / name, length, make) for name, length in _LENGTHS.items()]
    munge, jwt, password = found
    if munge is None or jwt is None or password is None:
        return None
    return Keys(munge=munge, jwt=jwt, password=password.decode("ascii"))


def _key(file: Path, length: int, make: bool) -> bytes | None:
    try:
        if make and not file.exists():
            write_once(file, _made(file, length))
        data = file.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise OuvrageError(
            "fleet/keys", f"{file} cannot be used: {error.strerror}",
            hint="the fleet's keys lie in its owner's home; run this as that user",
        ) from error  # fmt: skip
    if len(data) != length or (file.suffix == ".password" and not data.isalnum()):
        raise OuvrageError(
            "fleet/keys", f"{file} has {len(data)} bytes, it was made with {length}",
            hint="take it from a backup: with another key no host would believe another",
        )  # fmt: skip
    return data


def _made(file: Path, length: int) -> bytes:
    if file.suffix == ".password":
        return random_bytes(length // 2).hex().encode()
    return random_bytes(length)
