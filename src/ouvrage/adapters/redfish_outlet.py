"""One outlet of a rack's power distribution unit that speaks Redfish, as a way to the power of the machine that hangs on it.

Decides only where an outlet stands and which of its words mean what; an outlet cuts power and gives it back, and cannot ask a system
to shut down. How the service is spoken to is ``redfish``'s. Names follow DMTF DSP0268 (``Outlet``, ``RackPDUs``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from ouvrage.adapters import redfish_form as form
from ouvrage.adapters.power_port import PowerFault
from ouvrage.adapters.power_quirks import Quirk
from ouvrage.adapters.redfish import STATES, Redfish, Where
from ouvrage.model.power import UNKNOWN_STATE, LogPage, PowerLimit, Reading

_CONTROL = "#Outlet.PowerControl"


class RackOutlet(Redfish):
    """Outlet ``outlet`` (``A1``) of the unit ``pdu`` of one service."""

    def __init__(
        self, where: Where, quirk_of: Callable[[str, str], Quirk], pdu: str, outlet: str
    ) -> None:
        super().__init__(where, quirk_of)
        unit = f"/redfish/v1/PowerEquipment/RackPDUs/{quote(pdu, safe='')}"
        self._place = f"{unit}/Outlets/{quote(outlet, safe='')}"

    def _outlet(self) -> Any:
        self._signed_in()
        told = self._get(self._place)
        if not form.under(told):
            raise PowerFault("garbled", "its outlet is no object")
        return told

    def state(self) -> str:
        """By ``PowerState``; between the two it says neither."""
        with self._asking():
            return STATES.get(str(self._outlet().get("PowerState")), UNKNOWN_STATE)

    def turn_on(self) -> None:
        """Close it."""
        self._control("On")

    def turn_off(self, *, hard: bool = True) -> None:
        """Open it: what hangs on it loses power at once."""
        if not hard:
            raise PowerFault(
                "unsupported",
                "an outlet can only cut the power: shut the system down first, then --hard",
            )
        self._control("Off")

    def _control(self, wanted: str) -> None:
        with self._asking():
            target = form.under(self._outlet(), "Actions", _CONTROL).get("target")
            if not isinstance(target, str) or not target.startswith("/"):
                raise PowerFault("unsupported", "this outlet cannot be switched")
            self._link.post(target, data={"PowerState": wanted})

    def sensors(self) -> list[Reading]:
        """Its meter alone."""
        told = self.power_w()
        return [] if told is None else [told]

    def power_w(self) -> Reading | None:
        """By ``PowerWatts``, where it is metered."""
        with self._asking():
            return form.draw_of(self._outlet())

    def restore_policy(self) -> str | None:
        """The outlet's own, ``PowerRestorePolicy``."""
        with self._asking():
            return form.RESTORES.get(str(self._outlet().get("PowerRestorePolicy")))

    def events(self, after: str | None = None) -> LogPage:
        """An outlet keeps none."""
        raise PowerFault("unsupported", "an outlet keeps no event log")

    def power_limit(self) -> PowerLimit:
        """There can be none."""
        raise PowerFault("unsupported", "an outlet limits no power")

    def set_power_limit(self, watts: int | None) -> None:
        """There can be none."""
        raise PowerFault("unsupported", "an outlet limits no power")
