"""GPUs through NVIDIA's own Python binding, ``nvidia-ml-py``.

Decides which calls make a reading, in what order of belief, and how often: the process list is
never asked (milliseconds each), PCIe traffic by the card's counters where it has them and else one
card at a time (that call lasts 20 ms), and what hardly changes every ten ticks. A call that this
card or driver does not know is not made again. Any call may block for ever, kill the process or
return nonsense, so this runs in a process of its own (``meter.gpu_probe``), never in the meter.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ouvrage.adapters.gpu_port import (
    NAMES,
    PLACE,
    Identity,
    Lost,
    Reading,
    Unavailable,
    cleaned,
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
_UNSIGNED_LONG = (2, 3)
_SIGNED_LONG = 4


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
            return cleaned(self._gpu(index).read(tick, self._count))
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
            nvml.nvmlDeviceRegisterEvents(handle, nvml.nvmlEventTypeXidCriticalError, self._events)
        except (nvml.NVMLError, AttributeError):
            return

    def errors(self) -> list[tuple[int | None, int]]:
        """Xid errors since it was last asked; a set of events that fails is not asked again."""
        nvml, found = self._nvml, []
        while self._events is not None and len(found) < MOST_ERRORS:
            try:
                event = nvml.nvmlEventSetWait_v2(self._events, 0)
            except nvml.NVMLError as error:
                if error.value not in _NO_NEWS:
                    self._events = None
                break
            except AttributeError:
                self._events = None
                break
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
        self._nvml = nvml
        self._index = index
        self._kept: Reading = [None] * len(NAMES)
        self._fields = _Fields(nvml, handle, _FIELD_IDS)
        self._rare_fields = _Fields(nvml, handle, _RARE_IDS)
        self._often = _questions(nvml, handle, _OFTEN)
        self._reasons = _reasons(nvml, handle)
        self._energy = _questions(nvml, handle, _ENERGY_ALONE)
        self._power = _questions(nvml, handle, _POWER_ALONE)
        self._rarely = _questions(nvml, handle, _RARE)
        self._traffic = _questions(nvml, handle, _TRAFFIC)

    def read(self, tick: int, gpus: int) -> Reading:
        """What it says now; rare questions in turn, so that no tick is dear."""
        values = self._kept[:]
        self._ask(self._often, values)
        self._ask(self._reasons, values)
        self._fields.read(values)
        if values[_ENERGY] is None:
            self._ask(self._energy, values)
        if values[_POWER_AVERAGE] is None and values[_POWER_INSTANT] is None:
            self._ask(self._power, values)
        if tick == 0 or (tick + self._index) % RARELY == 0:
            self._ask(self._rarely, values)
            self._rare_fields.read(values)
            for place in _KEPT:
                self._kept[place] = values[place]
        if tick % gpus == self._index and values[_TX_BYTES] is None:
            self._ask(self._traffic, values)
        return values

    def _ask(self, questions: list[_Question], values: Reading) -> None:
        """Ask; forget what this card will never answer. Raises the binding's error when lost."""
        forget = None
        for question in questions:
            code = question.function(*question.arguments)
            if not code:
                for place, name in question.answers:
                    values[place] = getattr(question.out, name)
            elif code == _IS_LOST:
                raise self._nvml.NVMLError(code)
            elif code in _NEVER:
                forget = question
        if forget is not None:
            questions.remove(forget)


MOST_ERRORS = 64
_NO_NEWS = frozenset((10, 15))  # time-out: nothing happened; a lost card: others may still tell
_IS_LOST = 15
_NEVER = frozenset((2, 3, 4, 13))  # invalid argument, not supported, no permission, no function
_ENERGY, _POWER_AVERAGE, _POWER_INSTANT, _TX_BYTES = (
    PLACE[name] for name in ("energy_mj", "power_average_mw", "power_instant_mw", "pcie_tx_bytes")
)
_KEPT = tuple(
    PLACE[name]
    for name in (
        *("clock_memory_mhz", "pcie_generation", "pcie_width", "ecc_corrected", "ecc_uncorrected"),
        *("power_limit_mw", "memory_temperature_c"),
    )
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


@dataclass(frozen=True, slots=True)
class _Question:
    """One call of the library into memory made once, and which fields the answer holds."""

    function: Any
    arguments: tuple[Any, ...]
    out: Any
    answers: tuple[tuple[int, str], ...]


def _questions(nvml: Any, handle: Any, asked: tuple[_Asked, ...]) -> list[_Question]:
    """The questions that this library knows."""
    found: list[_Question] = []
    for name, kind, arguments, answers in asked:
        function = getattr(nvml.nvmlLib, name, None)
        if function is not None:
            out = getattr(nvml, kind, None) or getattr(ctypes, kind)
            place = out()
            found.append(
                _Question(
                    function,
                    (handle, *arguments, ctypes.byref(place)),
                    place,
                    tuple((PLACE[field], attribute) for field, attribute in answers.items()),
                )
            )
    return found


def _reasons(nvml: Any, handle: Any) -> list[_Question]:
    """Why the clocks are where they are, under the old name where the driver is old."""
    names = ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons")
    asked: tuple[_Asked, ...] = tuple(
        (name, _LONG, (), {"clock_reasons": "value"}) for name in names
    )
    return _questions(nvml, handle, asked)[:1]


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
        """The array, and a view of each field in it with the place it goes to."""
        self._array: Any = (self._nvml.c_nvmlFieldValue_t * max(1, len(self._names)))()
        self._views: list[tuple[str, int, Any, Any]] = []
        for index, name in enumerate(self._names):
            field = self._array[index]
            field.fieldId = getattr(self._nvml, self._ids[name])
            self._views.append((name, PLACE[name], field, field.value))

    def read(self, values: Reading) -> None:
        """Ask for them. A field that never spoke and is refused is not asked for again."""
        if not self._views:
            return
        code = self._ask(self._handle, len(self._views), self._array)
        if code == _IS_LOST:
            raise self._nvml.NVMLError(code)
        refused = False
        for _, place, field, value in self._views if not code else ():
            if field.nvmlReturn:
                refused = True
            else:
                values[place] = _number(field.valueType, value)
        if refused and not code:
            self._forget_the_refused()

    def _forget_the_refused(self) -> None:
        self._spoken |= {name for name, _, field, _ in self._views if not field.nvmlReturn}
        never = {name for name, _, field, _ in self._views if field.nvmlReturn in _NEVER}
        kept = [name for name in self._names if name not in never or name in self._spoken]
        if kept != self._names:
            self._names = kept
            self._make()


def _number(kind: int, value: Any) -> int | None:
    """The whole number in a field, by the type that the library says it has."""
    if kind == 1:
        return value.uiVal
    if kind in _UNSIGNED_LONG:
        return value.ullVal
    if kind == _SIGNED_LONG:
        return value.sllVal
    return round(value.dVal) if kind == 0 and value.dVal == value.dVal else None


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
