"""A meter at the wall: a smart plug asked over HTTP, and the port that any such meter fills.

Decides how an answer in JSON becomes watts and a counter: the forms of Shelly (``/rpc/Switch.GetStatus
?id=0``, ``/meter/0``) and Tasmota (``/cm?cmnd=Status%208``) plugs, told apart by what they contain.
The plug is asked in the process that reads the GPUs or one like it, with a deadline, and whatever it
answers that is no such form is refused. Nothing is ever sent to it but that one question.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from ouvrage.adapters.cut_off import CutOff

MOST_BYTES = 65_536
GREATEST_MW = 100_000_000
TIMEOUT_S = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class WallReading:
    """Milliwatts now and microjoules counted so far; None where the meter does not say."""

    power_mw: int | None
    energy_uj: int | None


class WallFault(Exception):
    """The meter did not answer, or not in a form that is known."""


class WallMeter(Protocol):
    """Something that can say what is drawn at the wall."""

    def read(self) -> WallReading:
        """A reading now. Raises ``WallFault``."""
        ...


class WallMeterTwin:
    """The in-memory twin: says what it was told to say, or fails as told."""

    def __init__(self, *readings: WallReading | WallFault) -> None:
        self._readings = list(readings)

    def read(self) -> WallReading:
        """The next reading, the last one again and again."""
        reading = self._readings.pop(0) if len(self._readings) > 1 else self._readings[0]
        if isinstance(reading, WallFault):
            raise reading
        return reading


class PlugMeter:
    """A plug behind a URL; ``fetch`` gets the body of that URL within a deadline."""

    def __init__(self, url: str, fetch: Callable[[str], bytes] | None = None) -> None:
        self._url = url
        self._fetch = fetch or fetched

    def read(self) -> WallReading:
        """Ask once."""
        try:
            said = json.loads(self._fetch(self._url))
        except (OSError, ValueError, RecursionError) as error:
            raise WallFault(str(error) or type(error).__name__) from error
        return reading_of(said)


def fetched(
    url: str,
    most: int = MOST_BYTES,
    *,
    timeout_s: float = TIMEOUT_S,
    headers: Mapping[str, str] | None = None,
) -> bytes:
    """The body of a URL. ``OSError`` where it is not there in time, or too long.

    Nobody is asked but the one who was named: a redirect is an answer that says nothing.
    """
    from http.client import HTTPException
    from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

    from ouvrage.adapters.wall_link import Watched, WatchedTls

    class Stays(HTTPRedirectHandler):
        def redirect_request(self, *_: Any, **__: Any) -> None:
            return None

    asking = Request(url, headers=dict(headers or {}))  # noqa: S310 - who names the address says which kind
    with CutOff(timeout_s) as cut:
        opener = build_opener(ProxyHandler({}), Stays(), Watched(cut), WatchedTls(cut))
        try:
            with opener.open(asking, timeout=timeout_s) as answer:
                data = answer.read(most + 1)
        except HTTPException as error:
            raise OSError("no answer in time" if cut.passed else str(error)) from error
        if cut.passed:
            raise OSError("no answer in time")
    if len(data) > most:
        raise OSError("the answer is too long")
    return data


def reading_of(said: Any) -> WallReading:
    """What an answer says. Raises ``WallFault`` for a form that is not known."""
    power = energy = None
    if isinstance(said, dict):
        if "apower" in said:
            power, energy = _scaled(said["apower"], 1000), _counter(said.get("aenergy"))
        elif "power" in said:
            power, energy = _scaled(said["power"], 1000), _scaled(said.get("total"), 60_000_000)
        elif isinstance(sensors := said.get("StatusSNS", said), dict) and isinstance(
            told := sensors.get("ENERGY"), dict
        ):
            power = _scaled(told.get("Power"), 1000)
            energy = _scaled(told.get("Total"), 3_600_000_000_000)
    if power is not None and not 0 <= power <= GREATEST_MW:
        power = None
    if energy is not None and energy < 0:
        energy = None
    if power is None and energy is None:
        raise WallFault("the answer is no form of a plug's that is known here")
    return WallReading(power_mw=power, energy_uj=energy)


def _counter(said: Any) -> int | None:
    """Shelly's second generation counts watt-hours under ``total``."""
    return _scaled(said.get("total"), 3_600_000_000) if isinstance(said, dict) else None


def _scaled(value: Any, factor: int) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not -1e15 < value < 1e15:
        return None
    return round(value * factor)
