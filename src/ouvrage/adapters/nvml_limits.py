"""Power limits of NVIDIA cards: what they are, what they may be, and setting one.

Decides which calls tell that, and nothing about when it is wise to set one. Cards are named by UUID:
an index can mean another card when one has vanished. As with every call into a driver this runs in
a process of its own (``meter.limits_child``), which may hang or die.
"""

from __future__ import annotations

from typing import Any

from ouvrage.adapters.gpu_port import sound
from ouvrage.adapters.limit_port import CardLimits, Refused
from ouvrage.adapters.nvml import begun

_KINDS = {3: "unsupported", 4: "permission", 15: "lost"}


class NvmlLimits:
    """The real library, through the binding."""

    def __init__(self) -> None:
        self._nvml: Any = None

    def open(self) -> None:
        """Load the library and begin."""
        self._nvml = begun()

    def look(self) -> list[CardLimits]:
        """Every card that answers, in the driver's order."""
        found: list[CardLimits] = []
        for index in range(int(self._asked("nvmlDeviceGetCount"))):
            try:
                handle = self._asked("nvmlDeviceGetHandleByIndex", index)
                found.append(self._card(index, handle))
            except Refused as error:
                if error.kind != "lost":
                    raise
        return found

    def set(self, uuid: str, milliwatts: int) -> int:
        """Set a card's limit; what it reads afterwards."""
        handle = self._asked("nvmlDeviceGetHandleByUUID", uuid)
        self._asked("nvmlDeviceSetPowerManagementLimit", handle, milliwatts)
        return int(self._asked("nvmlDeviceGetPowerManagementLimit", handle))

    def _card(self, index: int, handle: Any) -> CardLimits:
        name = self._asked("nvmlDeviceGetName", handle)
        least, most = self._told("nvmlDeviceGetPowerManagementLimitConstraints", handle) or (
            None,
            None,
        )
        mig = self._told("nvmlDeviceGetMigMode", handle)
        using = self._told("nvmlDeviceGetComputeRunningProcesses", handle)
        return CardLimits(
            index=index,
            uuid=str(self._asked("nvmlDeviceGetUUID", handle)),
            name=name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name),
            limit_mw=sound(self._told("nvmlDeviceGetPowerManagementLimit", handle)),
            least_mw=sound(least),
            most_mw=sound(most),
            default_mw=sound(self._told("nvmlDeviceGetPowerManagementDefaultLimit", handle)),
            persistence=self._told("nvmlDeviceGetPersistenceMode", handle),
            mig=bool(mig and mig[0]),
            processes=None if using is None else [int(each.pid) for each in using],
        )

    def _told(self, name: str, *arguments: Any) -> Any:
        """An answer, None where this card has none to give; a lost card is refused."""
        try:
            return self._asked(name, *arguments)
        except Refused as error:
            if error.kind == "lost":
                raise
            return None

    def _asked(self, name: str, *arguments: Any) -> Any:
        try:
            return getattr(self._nvml, name)(*arguments)
        except self._nvml.NVMLError as error:
            raise Refused(_KINDS.get(int(error.value), "driver"), str(error)) from error
