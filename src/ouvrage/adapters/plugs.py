"""Smart plugs as a way to a machine's power: Shelly of both generations, and Tasmota, over HTTP.

Decides which address asks and which one switches, and how a password is shown: by digest or basic authentication to a Shelly, in
the address to a Tasmota, which knows no other way. A plug cuts power and gives it back; it cannot ask a system to shut down, has no
event log and no limit. What its meter says is read by ``wall_meter``.
"""

from __future__ import annotations

import base64
import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import parse_http_list, parse_keqv_list

from ouvrage.adapters.clock import new_id
from ouvrage.adapters.power_port import PowerFault
from ouvrage.adapters.power_turn import bmc_at, turn
from ouvrage.adapters.wall_meter import MOST_BYTES, WallFault, fetched, reading_of
from ouvrage.model.power import (
    AS_BEFORE,
    OFF,
    ON,
    STAYS_OFF,
    STAYS_ON,
    UNKNOWN_STATE,
    LogPage,
    PowerLimit,
    Reading,
)

_GEN1 = {"on": STAYS_ON, "off": STAYS_OFF, "last": AS_BEFORE}
_GEN2 = {"on": STAYS_ON, "off": STAYS_OFF, "restore_last": AS_BEFORE}
_TASMOTA = {"0": STAYS_OFF, "1": STAYS_ON, "3": AS_BEFORE, "4": STAYS_ON}
"""``default_state``, ``initial_state`` and ``PowerOnState``; other settings (a button's, toggled) are none of ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Socket:
    """Where a plug is, and which of its outlets (counted from 0) feeds the machine."""

    address: str
    outlet: int = 0
    user: str | None = None
    password: Callable[[], str] | None = None
    timeout_s: float = 5


class _Plug(ABC):
    """What every plug does in the same way."""

    kind = "plug"

    def __init__(self, socket: Socket) -> None:
        self._socket = socket

    def sensors(self) -> list[Reading]:
        """Its meter alone."""
        told = self.power_w()
        return [] if told is None else [told]

    def events(self, after: str | None = None) -> LogPage:
        """It keeps none."""
        raise PowerFault("unsupported", "a plug keeps no event log")

    def power_limit(self) -> PowerLimit:
        """There can be none."""
        raise PowerFault("unsupported", "a plug limits no power")

    def set_power_limit(self, watts: int | None) -> None:
        """There can be none."""
        raise PowerFault("unsupported", "a plug limits no power")

    def turn_on(self) -> None:
        """Close its relay."""
        self._switch(on=True)

    def turn_off(self, *, hard: bool = True) -> None:
        """Open its relay: what hangs on it loses power at once."""
        if not hard:
            raise PowerFault(
                "unsupported",
                "a plug can only cut the power: shut the system down first, then --hard",
            )
        self._switch(on=False)

    def power_w(self) -> Reading | None:
        """By its meter, where it has one."""
        try:
            told = reading_of(self._measured())
        except WallFault:
            return None
        if told.power_mw is None:
            return None
        return Reading(name="power", value=Decimal(told.power_mw) / 1000, unit="W", verdict="OK")

    @abstractmethod
    def _switch(self, *, on: bool) -> None: ...

    @abstractmethod
    def _measured(self) -> Any: ...

    def _get(self, path: str, headers: dict[str, str] | None = None) -> Any:
        """The JSON behind a path. Raises ``PowerFault``; its words never repeat the address."""
        socket = self._socket
        try:
            with turn(bmc_at(socket.address), socket.timeout_s):
                body = fetched(
                    socket.address + path, MOST_BYTES, timeout_s=socket.timeout_s, headers=headers
                )
        except HTTPError as error:
            error.close()
            if error.code == 401:
                raise _Challenged(error.headers.get("WWW-Authenticate") or "") from None
            if 300 <= error.code < 400:
                raise PowerFault(
                    "garbled", f"it sends on to elsewhere (HTTP {error.code}), not followed"
                ) from None
            kind = (
                "busy"
                if error.code in (429, 503)
                else "unsupported"
                if error.code == 404
                else "failed"
            )
            raise PowerFault(kind, f"HTTP {error.code}") from None
        except OSError as error:
            raise PowerFault(
                "silent", "nobody answers there" if "refused" in str(error) else "no answer in time"
            ) from None
        try:
            return json.loads(body)
        except (ValueError, RecursionError):
            raise PowerFault("garbled", "its answer is no JSON") from None


class _Challenged(PowerFault):
    """It wants to know who asks; ``challenge`` is what it said."""

    def __init__(self, challenge: str) -> None:
        super().__init__("refused", "it does not take this user and password")
        self.challenge = challenge


class Shelly(_Plug):
    """A Shelly; which generation it is of is what it says itself at ``/shelly``."""

    kind = "shelly"

    def __init__(self, socket: Socket) -> None:
        super().__init__(socket)
        self._second: bool | None = None

    def state(self) -> str:
        """By its relay."""
        told = self._status()
        output = told.get("output", told.get("ison")) if isinstance(told, dict) else None
        return (
            {True: ON, False: OFF}.get(output, UNKNOWN_STATE)
            if isinstance(output, bool)
            else UNKNOWN_STATE
        )

    def restore_policy(self) -> str | None:
        """By its own setting for the return of electricity."""
        outlet = self._socket.outlet
        if self._is_second():
            told = self._asked(f"/rpc/Switch.GetConfig?id={outlet}")
            return _GEN2.get(_text(told, "initial_state"))
        return _GEN1.get(_text(self._asked(f"/settings/relay/{outlet}"), "default_state"))

    def _status(self) -> Any:
        outlet = self._socket.outlet
        return self._asked(
            f"/rpc/Switch.GetStatus?id={outlet}" if self._is_second() else f"/relay/{outlet}"
        )

    def _measured(self) -> Any:
        return self._status() if self._is_second() else self._asked(f"/meter/{self._socket.outlet}")

    def _switch(self, *, on: bool) -> None:
        outlet = self._socket.outlet
        if self._is_second():
            self._asked(f"/rpc/Switch.Set?id={outlet}&on={'true' if on else 'false'}")
        else:
            self._asked(f"/relay/{outlet}?turn={'on' if on else 'off'}")

    def _is_second(self) -> bool:
        if self._second is None:
            told = self._get("/shelly")
            self._second = (
                isinstance(told, dict) and isinstance(told.get("gen"), int) and told["gen"] >= 2
            )
        return self._second

    def _asked(self, path: str) -> Any:
        """An answer, with the password where one is asked for."""
        try:
            return self._get(path)
        except _Challenged as asked:
            shown = self._shown(path, asked.challenge)
            if shown is None:
                raise
            return self._get(path, {"Authorization": shown})

    def _shown(self, path: str, challenge: str) -> str | None:
        """The header that answers a challenge; None where there is nothing to answer it with."""
        secret = self._socket.password
        if secret is None:
            return None
        user = self._socket.user or "admin"
        scheme, _, rest = challenge.partition(" ")
        if scheme.lower() == "digest":
            try:
                asked = parse_keqv_list(parse_http_list(rest))
            except (ValueError, IndexError):  # a challenge in no form that there is
                return None
            return digest(user, secret(), path, asked, new_id()[:16])
        if (
            self._is_second()
        ):  # it always asks by digest (Shelly's own documentation): another is after the password
            return None
        return "Basic " + base64.b64encode(f"{user}:{secret()}".encode()).decode()


class Tasmota(_Plug):
    """A plug with Tasmota's firmware."""

    kind = "tasmota"

    def state(self) -> str:
        """By its relay."""
        return {"ON": ON, "OFF": OFF}.get(self._power(), UNKNOWN_STATE)

    def restore_policy(self) -> str | None:
        """By its own setting for the return of electricity."""
        return _TASMOTA.get(_text(self._command("PowerOnState"), "PowerOnState"))

    def _measured(self) -> Any:
        return self._command("Status 8")

    def _switch(self, *, on: bool) -> None:
        self._power("On" if on else "Off")

    def _power(self, order: str = "") -> str:
        """One relay answers as ``POWER``, several as ``POWER1`` and so on."""
        number = self._socket.outlet + 1
        told = self._command(f"Power{number} {order}".strip())
        return _text(told, f"POWER{number}") or (_text(told, "POWER") if number == 1 else "")

    def _command(self, command: str) -> Any:
        secret = self._socket.password
        who = ""
        if secret is not None:
            who = f"user={quote(self._socket.user or 'admin', safe='')}&password={quote(secret(), safe='')}&"
        told = self._get(f"/cm?{who}cmnd={quote(command)}")
        if isinstance(told, dict) and "WARNING" in told:
            raise PowerFault("refused", "it does not take this user and password")
        return told


def _text(told: Any, name: str) -> str:
    value = told.get(name) if isinstance(told, dict) else None
    return str(value) if isinstance(value, (str, int)) and not isinstance(value, bool) else ""


def digest(user: str, password: str, path: str, asked: dict[str, str], nonce: str) -> str:
    """The answer to a digest challenge with ``qop=auth`` (RFC 7616, 3.4), by SHA-256 where it is asked for, else MD5."""
    sha = asked.get("algorithm", "MD5").upper() == "SHA-256"
    realm, theirs = asked.get("realm", ""), asked.get("nonce", "")

    def hashed(text: str) -> str:
        made = hashlib.sha256 if sha else hashlib.md5  # the challenge names it
        return made(text.encode()).hexdigest()

    secret, what = hashed(f"{user}:{realm}:{password}"), hashed(f"GET:{path}")
    answer = hashed(f"{secret}:{theirs}:00000001:{nonce}:auth:{what}")
    return (
        f'Digest username="{user}", realm="{realm}", nonce="{theirs}", uri="{path}", '
        f'algorithm={"SHA-256" if sha else "MD5"}, qop=auth, nc=00000001, cnonce="{nonce}", response="{answer}"'
    )
