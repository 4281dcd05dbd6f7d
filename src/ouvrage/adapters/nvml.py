"""GPUs through NVIDIA's own Python binding, ``nvidia-ml-py``.

Decides which calls make a reading, in what order of belief, and how often: the process list is
never asked (milliseconds each), PCIe traffic by the card's counters where it has them and else one
card at a time (that call lasts 20 ms), and what hardly changes every ten ticks. A call that this
card or driver does not know is not made again. Any call may block for ever, kill the process or
return nonsense, so this runs in a process of its own (``meter.gpu_probe``), never in the meter.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from ouvrage.adapters.gpu_port import (
    BLANKS,
    FIELDS,
    NAMES,
    OFTEN,
    PLACE,
    Identity,
    Lost,
    Reading,
    Unavailable,
    sound,
)

RARELY = 10
_RARE_IDS = {"memory_temperature_c": "NVML_FI_DEV_MEMORY_TEMP"}
_FIELD_IDS = {
    "energy_mj": "NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
    "power_average_mw": "NVML_FI_DEV_POWER_AVERAGE",
    "power_instant_mw": "NVML_FI_DEV_POWER_INSTANT",
    "pcie_tx_bytes": "NVML_FI_DEV_PCIE_COUNT_TX_BYTES",
    "pcie_rx_bytes": "NVML_FI_DEV_PCIE_COUNT_RX_BYTES",
}
_MEMBERS = ("valueType", "nvmlReturn", "value")
_LETTERS = {0: "d", 1: "I", 2: "Q", 3: "Q", 4: "q"}
"""How ``struct`` reads the types of a field that are believed, by the library's numbers for them."""


def begun() -> Any:
    """The binding, its library loaded and initialised. Raises ``Unavailable``."""
    try:
        import pynvml
    except ImportError as error:
        raise Unavailable("library", str(error)) from error
    nvml: Any = pynvml
    try:
        nvml.nvmlInit()
    except nvml.NVMLError_LibraryNotFound as error:
        raise Unavailable("library", str(error)) from error
    except nvml.NVMLError as error:
        raise Unavailable("driver", str(error)) from error
    return nvml


class Nvml:
    """The real library, through the binding."""

    def __init__(self) -> None:
        self._nvml: Any = None
        self._gpus: dict[int, _Gpu] = {}
        self._count = 0
        self._events: Any = None
        self._event: Any = None
        self._wait: Callable[[], int] | None = None

    def open(self) -> int:
        """Load the library and begin."""
        self._nvml = begun()
        try:
            self._count = int(self._nvml.nvmlDeviceGetCount())
        except self._nvml.NVMLError as error:
            raise Unavailable("driver", str(error)) from error
        return self._count

    def describe(self, index: int) -> Identity:
        """Who the GPU is."""
        return _described(self._nvml, index, self._gpu(index).handle)

    def read(self, index: int, tick: int) -> Reading:
        """One reading."""
        try:
            return self._gpu(index).read(tick, self._count)
        except self._nvml.NVMLError_GpuIsLost as error:
            self._gpus.pop(index, None)
            raise Lost(str(error)) from error

    def _gpu(self, index: int) -> _Gpu:
        """The GPU, its handle fetched once; a lost one refuses even that."""
        if index not in self._gpus:
            try:
                handle = self._nvml.nvmlDeviceGetHandleByIndex(index)
            except self._nvml.NVMLError as error:
                raise Lost(str(error)) from error
            self._gpus[index] = _Gpu(self._nvml, index, handle)
            self._listen(handle)
        return self._gpus[index]

    def _listen(self, handle: Any) -> None:
        """Ask for the errors of a card; one that keeps them to itself is read all the same."""
        nvml = self._nvml
        try:
            if self._events is None:
                self._events = nvml.nvmlEventSetCreate()
                self._event = nvml.c_nvmlEventData_t()
                place = ctypes.byref(self._event)
                self._wait = partial(nvml.nvmlLib.nvmlEventSetWait_v2, self._events, place, 0)
            nvml.nvmlDeviceRegisterEvents(handle, nvml.nvmlEventTypeXidCriticalError, self._events)
        except (nvml.NVMLError, AttributeError):
            return

    def errors(self) -> list[tuple[int | None, int]]:
        """Xid errors since it was last asked; a set of events that fails is not asked again."""
        nvml, found = self._nvml, []
        while self._wait is not None and len(found) < MOST_ERRORS:
            code = self._wait()
            if code:
                if code not in _NO_NEWS:
                    self._wait = None
                break
            event = self._event
            if event.eventType & nvml.nvmlEventTypeXidCriticalError:
                found.append((self._index_of(event.device), int(event.eventData)))
        return found

    def _index_of(self, handle: Any) -> int | None:
        try:
            return int(self._nvml.nvmlDeviceGetIndex(handle))
        except self._nvml.NVMLError:
            return None


class _Gpu:
    """One GPU: the questions that still have an answer on it."""

    def __init__(self, nvml: Any, index: int, handle: Any) -> None:
        self.handle = handle
        self._index = index
        self._kept: Reading = [None] * len(NAMES)
        self._fields = _Fields(nvml, handle, _FIELD_IDS)
        self._rare_fields = _Fields(nvml, handle, _RARE_IDS)
        self._often = _Questions(nvml, handle, (*_OFTEN, _reasons(nvml)))
        self._energy = _Questions(nvml, handle, _ENERGY_ALONE)
        self._power = _Questions(nvml, handle, _POWER_ALONE)
        self._rarely = _Questions(nvml, handle, _RARE)
        self._traffic = _Questions(nvml, handle, _TRAFFIC)

    def read(self, tick: int, gpus: int) -> Reading:
        """What it says now; rare questions in turn, so that no tick is dear."""
        values = self._kept[:]
        self._often.read(values)
        self._fields.read(values)
        if values[_ENERGY] is None:
            self._energy.read(values)
        if values[_POWER_AVERAGE] is None and values[_POWER_INSTANT] is None:
            self._power.read(values)
        if tick == 0 or (tick + self._index) % RARELY == 0:
            self._rarely.read(values)
            self._rare_fields.read(values)
            self._kept[OFTEN:] = values[OFTEN:]
        if tick % gpus == self._index and values[_TX_BYTES] is None:
            self._traffic.read(values)
        return values


MOST_ERRORS = 64
_NO_NEWS = frozenset((10, 15))  # time-out: nothing happened; a lost card: others may still tell
_IS_LOST = 15
_NEVER = frozenset((2, 3, 4, 13))  # invalid argument, not supported, no permission, no function
_ENERGY, _POWER_AVERAGE, _POWER_INSTANT, _TX_BYTES = (
    PLACE[name] for name in ("energy_mj", "power_average_mw", "power_instant_mw", "pcie_tx_bytes")
)
_Asked = tuple[str, str, tuple[int, ...], dict[str, str]]
_UINT, _LONG = "c_uint", "c_ulonglong"
_OFTEN: tuple[_Asked, ...] = (
    (
        "nvmlDeviceGetUtilizationRates",
        "c_nvmlUtilization_t",
        (),
        {"busy_percent": "gpu", "memory_busy_percent": "memory"},
    ),
    ("nvmlDeviceGetMemoryInfo", "c_nvmlMemory_t", (), {"memory_used_bytes": "used"}),
    ("nvmlDeviceGetTemperature", _UINT, (0,), {"temperature_c": "value"}),
    ("nvmlDeviceGetClockInfo", _UINT, (1,), {"clock_sm_mhz": "value"}),
)
_ENERGY_ALONE: tuple[_Asked, ...] = (
    ("nvmlDeviceGetTotalEnergyConsumption", _LONG, (), {"energy_mj": "value"}),
)
_POWER_ALONE: tuple[_Asked, ...] = (
    ("nvmlDeviceGetPowerUsage", _UINT, (), {"power_usage_mw": "value"}),
)
_RARE: tuple[_Asked, ...] = (
    ("nvmlDeviceGetClockInfo", _UINT, (2,), {"clock_memory_mhz": "value"}),
    ("nvmlDeviceGetCurrPcieLinkGeneration", _UINT, (), {"pcie_generation": "value"}),
    ("nvmlDeviceGetCurrPcieLinkWidth", _UINT, (), {"pcie_width": "value"}),
    ("nvmlDeviceGetTotalEccErrors", _LONG, (0, 0), {"ecc_corrected": "value"}),
    ("nvmlDeviceGetTotalEccErrors", _LONG, (1, 0), {"ecc_uncorrected": "value"}),
    ("nvmlDeviceGetEnforcedPowerLimit", _UINT, (), {"power_limit_mw": "value"}),
)
_TRAFFIC: tuple[_Asked, ...] = (
    ("nvmlDeviceGetPcieThroughput", _UINT, (0,), {"pcie_tx_kb_s": "value"}),
    ("nvmlDeviceGetPcieThroughput", _UINT, (1,), {"pcie_rx_kb_s": "value"}),
)


def _reasons(nvml: Any) -> _Asked:
    """Why the clocks are where they are, under the old name where the library is old."""
    name = "nvmlDeviceGetCurrentClocksEventReasons"
    if getattr(nvml.nvmlLib, name, None) is None:
        name = "nvmlDeviceGetCurrentClocksThrottleReasons"
    return (name, _LONG, (), {"clock_reasons": "value"})


def _taken(numbers: Sequence[tuple[int, str]], size: int) -> str:
    """How ``struct`` takes numbers out of memory: each by its offset and letter."""
    form, at = "=", 0
    for offset, letter in numbers:
        form += f"{offset - at}x{letter}"
        at = offset + struct.calcsize("=" + letter)
    return f"{form}{size - at}x"


class _Questions:
    """Calls whose answers come to lie in one block of memory, and leave it in one step.

    Once a second everything that is touched is out of the processor's caches: what is dear is not
    a call, but each further object that it needs.
    """

    def __init__(self, nvml: Any, handle: Any, asked: Sequence[_Asked]) -> None:
        self._nvml = nvml
        self._handle = handle
        self._make([one for one in asked if getattr(nvml.nvmlLib, one[0], None) is not None])

    def _make(self, asked: Sequence[_Asked]) -> None:
        self._asked = asked
        kinds = [getattr(self._nvml, one[1], None) or getattr(ctypes, one[1]) for one in asked]
        sizes = [(ctypes.sizeof(kind) + 7) // 8 * 8 for kind in kinds]
        self._block = (ctypes.c_char * sum(sizes))()
        self._calls: list[Callable[[], int]] = []
        numbers: list[tuple[int, str]] = []
        answers: list[tuple[int, int]] = []
        start = 0
        for (name, _, arguments, fields), kind, size in zip(asked, kinds, sizes, strict=True):
            place = ctypes.byref(kind.from_buffer(self._block, start))
            call = getattr(self._nvml.nvmlLib, name)
            self._calls.append(partial(call, self._handle, *arguments, place))
            for field, attribute in fields.items():
                inside: Any = getattr(kind, attribute) if hasattr(kind, "_fields_") else None
                wide = inside.size if inside else ctypes.sizeof(kind)
                numbers.append((start + (inside.offset if inside else 0), "IQ"[wide == 8]))
                answers.append((PLACE[field], FIELDS[field]))
            start += size
        self._answers = tuple(answers)
        self._take = struct.Struct(_taken(numbers, start)).unpack

    def read(self, values: Reading) -> None:
        """Ask. Raises the binding's error when the card is lost."""
        codes = [call() for call in self._calls]
        for (place, greatest), value in zip(self._answers, self._take(self._block), strict=True):
            values[place] = value if value <= greatest and value not in BLANKS else None
        if any(codes):
            self._sort_out(codes, values)

    def _sort_out(self, codes: list[int], values: Reading) -> None:
        """Take back what was not answered; forget what this card will never answer."""
        if _IS_LOST in codes:
            raise self._nvml.NVMLError(_IS_LOST)
        for code, (_, _, _, fields) in zip(codes, self._asked, strict=True):
            for field in fields if code else ():
                values[PLACE[field]] = None
        if _NEVER.intersection(codes):
            pairs = zip(codes, self._asked, strict=True)
            self._make([one for code, one in pairs if code not in _NEVER])


class _Fields:
    """Several fields in one call, in an array made once; those not supported are left out."""

    def __init__(self, nvml: Any, handle: Any, ids: Mapping[str, str]) -> None:
        self._nvml = nvml
        self._handle = handle
        self._ids = ids
        self._ask: Any = getattr(nvml.nvmlLib, "nvmlDeviceGetFieldValues", None)
        self._names = list(ids) if self._ask else []
        self._spoken: set[str] = set()
        self._make()

    def _make(self) -> None:
        self._array: Any = (self._nvml.c_nvmlFieldValue_t * len(self._names))()
        for field, name in zip(self._array, self._names, strict=True):
            field.fieldId = getattr(self._nvml, self._ids[name])
        self._know((1,) * len(self._names))

    def _know(self, kinds: tuple[int, ...]) -> None:
        """Each field's type, its code and its value, by the types that the library says."""
        kind: Any = self._nvml.c_nvmlFieldValue_t
        numbers: list[tuple[int, str]] = []
        for start, told in enumerate(kinds):
            letters = ("I", "I", _LETTERS.get(told, "Q"))
            for member, letter in zip(_MEMBERS, letters, strict=True):
                at = start * ctypes.sizeof(kind) + getattr(kind, member).offset
                numbers.append((at, letter))
        self._kinds = kinds
        self._take = struct.Struct(_taken(numbers, ctypes.sizeof(self._array))).unpack
        greatest = [FIELDS[name] for name in self._names]
        self._answers = tuple(
            (PLACE[name], most if told in _LETTERS else -1)
            for name, most, told in zip(self._names, greatest, kinds, strict=True)
        )

    def read(self, values: Reading) -> None:
        """Ask for them. A field that never spoke and is refused is not asked for again."""
        if not self._names:
            return
        code = self._ask(self._handle, len(self._names), self._array)
        if code == _IS_LOST:
            raise self._nvml.NVMLError(code)
        if code:
            return
        told = self._take(self._array)
        if told[::3] != self._kinds:
            self._know(told[::3])
            told = self._take(self._array)
        for (place, greatest), value in zip(self._answers, told[2::3], strict=True):
            sound = 0 <= value <= greatest and value not in BLANKS
            values[place] = round(value) if sound else None
        if any(told[1::3]):
            self._forget_the_refused(told[1::3], values)

    def _forget_the_refused(self, codes: Sequence[int], values: Reading) -> None:
        said = dict(zip(self._names, codes, strict=True))
        self._spoken |= {name for name, code in said.items() if not code}
        for name, code in said.items():
            if code:
                values[PLACE[name]] = None
        kept = [n for n, code in said.items() if code not in _NEVER or n in self._spoken]
        if kept != self._names:
            self._names = kept
            self._make()


def _described(nvml: Any, index: int, handle: Any) -> Identity:
    """Each part by itself: one that fails leaves the others."""

    def asked(name: str, *more: Any) -> Any:
        try:
            found = getattr(nvml, name)(*more)
        except (nvml.NVMLError, UnicodeDecodeError, ValueError):
            return None
        return found.decode("utf-8", "replace") if isinstance(found, bytes) else found

    pci, mig = asked("nvmlDeviceGetPciInfo", handle), asked("nvmlDeviceGetMigMode", handle)
    ecc, memory = asked("nvmlDeviceGetEccMode", handle), asked("nvmlDeviceGetMemoryInfo", handle)
    bus = getattr(pci, "busId", None)
    return {
        "index": index,
        "uuid": asked("nvmlDeviceGetUUID", handle),
        "name": asked("nvmlDeviceGetName", handle),
        "serial": asked("nvmlDeviceGetSerial", handle),
        "pci": bus.decode("ascii", "replace") if isinstance(bus, bytes) else bus,
        "driver": asked("nvmlSystemGetDriverVersion"),
        "memory_bytes": sound(memory and memory.total),
        "power_limit_mw": sound(asked("nvmlDeviceGetEnforcedPowerLimit", handle)),
        "power_limit_default_mw": sound(asked("nvmlDeviceGetPowerManagementDefaultLimit", handle)),
        "clock_sm_max_mhz": sound(asked("nvmlDeviceGetMaxClockInfo", handle, 1)),
        "pcie_generation_max": sound(asked("nvmlDeviceGetMaxPcieLinkGeneration", handle)),
        "pcie_width_max": sound(asked("nvmlDeviceGetMaxPcieLinkWidth", handle)),
        "mig": None if mig is None else int(bool(mig[0])),
        "ecc": None if ecc is None else int(bool(ecc[0])),
    }


def cards_now() -> list[tuple[str, str, int, int]]:
    """UUID, name, bytes of memory and bytes in use of each card.

    For a process that may hang: see ``adapters/scrub``. Raises ``Unavailable`` or the binding's own.
    """
    nvml = begun()
    found: list[tuple[str, str, int, int]] = []
    for index in range(int(nvml.nvmlDeviceGetCount())):
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        memory = nvml.nvmlDeviceGetMemoryInfo(handle)
        uuid, name = nvml.nvmlDeviceGetUUID(handle), nvml.nvmlDeviceGetName(handle)
        found.append((_text(uuid), _text(name), int(memory.total), int(memory.used)))
    return found


def _text(told: str | bytes) -> str:
    """Older versions of the binding give bytes."""
    return told if isinstance(told, str) else told.decode("utf-8", "replace")
