"""A work profile in a file: TOML, JSON, or CSV with one row or with lines ``name,value``.

Decides by which names a field may be called and in which units it may be written; what is refused is
told with its field, what was found and what was expected. A name that means nothing is told too.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from ouvrage.adapters.catalogues.rows import number_in
from ouvrage.adapters.json_text import load_json
from ouvrage.adapters.toml_text import load_toml, read_text
from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade, grade_of
from ouvrage.base.time import SECOND
from ouvrage.metering.timeuse import KEYS
from ouvrage.pricing.market.billing import DESTINATIONS
from ouvrage.pricing.market.gpus import model_of
from ouvrage.pricing.market.profile import Configuration, Moves, Needs, Profile, Timing
from ouvrage.pricing.rates.quantity import duration_us

NAMES: dict[str, tuple[str, ...]] = {
    "unit": ("unit", "unit_name"),
    "units": ("units", "count"),
    "seconds_per_unit": ("seconds_per_unit", "s_per_unit", "time_per_unit", "unit_seconds"),
    "low": ("seconds_per_unit_low", "low"),
    "high": ("seconds_per_unit_high", "high"),
    "grade": ("grade",),
    "said_by": ("said_by", "source", "by"),
    "name": ("measured_on_name", "on", "host", "offer", "configuration", "name"),
    "provider": ("provider", "measured_on_provider"),
    "gpu": ("gpu", "gpu_model", "gpu_name", "accelerator"),
    "gpus": ("gpus", "gpu_count", "num_gpus"),
    "vcpus": ("vcpus", "vcpu", "cpus", "cpu", "cores", "vcpus_used", "vcpu_used"),
    "memory": ("memory_gib", "memory_gb", "memory"),
    "ram": ("ram_gib", "ram_gb", "ram"),
    "need_gpu_memory": (
        *("gpu_memory_needed_gib", "gpu_memory_gib", "gpu_memory_gb", "gpu_memory"),
        *("memory_needed_gib", "memory_needed", "vram_gib", "vram_gb", "gpu_memory_needed"),
    ),
    "need_memory": ("ram_needed_gib", "ram_used_gib", "ram_used", "ram_needed", "needs_ram_gib"),
    "need_vcpus": ("vcpus_needed", "needs_vcpus"),
    "need_disk": ("disk_gb", "disk_needed_gb", "disk"),
    "startup": ("startup_s", "startup", "start_up_s", "setup_s"),
    "restart": ("restart_s", "restart"),
    "dataset": ("dataset", "data_in", "dataset_in"),
    "results": ("results", "result", "data_out", "results_out", "egress"),
    "out_before": ("egress_before", "egress_so_far", "out_before"),
    "egress_to": ("egress_to", "egress_destination", "destination"),
    "checkpoint": ("checkpoint", "checkpoint_size"),
    "checkpoint_every": (
        *("checkpoint_every_s", "checkpoint_interval_s", "checkpoint_every", "checkpoint_interval"),
    ),
    "volume": ("volume", "storage"),
    "image": ("image", "image_size"),
    "public_ips": ("public_ips", "public_ip"),
    "reserved": ("reserved_h", "reserved_hours"),
    "exchange": ("exchange", "gradient", "exchange_per_unit"),
    "interruptible": ("interruptible", "tolerates_interruption", "interruption_tolerated", "spot"),
    "mtbf": ("mtbf_h", "mtbf_hours", "mtbf"),
    "deadline": ("deadline_s", "deadline"),
    "tax": ("tax", "tax_rate", "vat", "vat_rate"),
    "deadline_h": ("deadline_h", "deadline_hours"),
}
TIME: dict[str, str] = {
    **{key: key for key in KEYS},
    "compute": "computing",
    "gpu": "computing",
    "data": "waiting_data",
    "loader": "waiting_data",
    "wait": "waiting_data",
    "wait_data": "waiting_data",
    "data_wait": "waiting_data",
    "wait_cpu": "waiting_cpu",
    "wait_storage": "waiting_storage",
    "wait_network": "waiting_network",
    "waits": "waiting_data",
    "waiting": "waiting_data",
    "cpu": "waiting_cpu",
    "storage": "waiting_storage",
    "disk": "waiting_storage",
    "network": "waiting_network",
    "memory": "waiting_memory",
    "other": "unknown",
}
_TIMES = ("time", "time_s", "times", "decomposition", "time_decomposition", "where", "terms")
_NEEDS = ("needs", "requires", "need")
_MEASURED = ("measured", "timing", "timings", "also_measured")
_SIZES = ("dataset", "results", "out_before", "checkpoint", "volume", "image", "exchange")
_ROUND = Fraction(1, 100)
_SUFFIX = {"_bytes": Fraction(1, 10**9), "_gb": Fraction(1), "_gib": Fraction(2**30, 10**9)}
_SUFFIX["_mb"] = Fraction(1, 1000)
_SUFFIX["_tb"] = Fraction(1000)


class _Fields:
    """The fields of a file by the names used here, with what was found under each."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.found: dict[str, tuple[str, Any]] = {}
        self.time: dict[str, Fraction] = {}
        self.timings: list[Mapping[str, Any]] = []
        self.unknown: list[str] = []

    def refuse(self, name: str, found: object, expected: str) -> OuvrageError:
        """A refusal that names the field."""
        return OuvrageError(
            "profile/field",
            f"{self.file} cannot be used as a profile",
            where=(f"{self.file}   {name}: found {str(found)[:80]!r}, expected {expected}",),
            hint="docs/guides/quote.md lists the fields of a profile",
        )

    def put(self, path: str, name: str, value: Any) -> None:
        """Take a field in under the name used here."""
        if name in self.found:
            raise self.refuse(path, value, f"one of {self.found[name][0]} and {path}, not both")
        self.found[name] = (path, value)

    def text(self, name: str) -> str | None:
        """A text, or None."""
        path, value = self.found.get(name, (name, None))
        if value is None or value == "":
            return None
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise self.refuse(path, value, "a text")
        return str(value).strip()[:200] or None

    def number(self, name: str, scale: Fraction = Fraction(1)) -> Fraction | None:
        """A number that is not negative, or None."""
        path, value = self.found.get(name, (name, None))
        if value is None or value == "":
            return None
        found = number_in(value)
        if found is None:
            raise self.refuse(path, value, "a number")
        return found * scale

    def seconds(self, name: str) -> Fraction | None:
        """A duration: a number of seconds, or a text such as ``6 h``."""
        path, value = self.found.get(name, (name, None))
        if isinstance(value, str) and value.strip() and number_in(value) is None:
            return seconds_in(value, self.refuse(path, value, "seconds, or a text such as '6 h'"))
        return self.number(name)

    def flag(self, name: str) -> bool | None:
        """Yes, no, or None."""
        path, value = self.found.get(name, (name, None))
        if isinstance(value, bool) or value is None or value == "":
            return value if isinstance(value, bool) else None
        word = str(value).strip().lower()
        if word not in ("yes", "no", "true", "false"):
            raise self.refuse(path, value, "true or false")
        return word in ("yes", "true")

    def gb(self, name: str) -> Fraction | None:
        """A size in GB, by the unit that its name ends with."""
        for suffix, scale in _SUFFIX.items():
            held = self.number(f"{name}{suffix}", scale)
            if held is not None:
                return held
        return None


def seconds_in(text: str, refused: OuvrageError) -> Fraction:
    """Seconds of a duration with its unit."""
    try:
        return Fraction(duration_us(text), SECOND)
    except ValueError:
        raise refused from None


def load_profile(path: Path) -> Profile:
    """The profile in a file."""
    return profile_in(str(path), read_text(path, "profile"))


def profile_in(file: str, text: str) -> Profile:
    """The profile that a text holds; its name tells TOML and JSON from CSV."""
    value: Any
    if file.lower().endswith(".toml"):
        value = load_toml(file, text, "profile/toml")
    elif file.lower().endswith(".json") or text.lstrip()[:1] == "{":
        value = load_json(file, text, "profile/json")
    else:
        value = _of_csv(file, text)
    fields = _Fields(file)
    if not isinstance(value, dict):
        raise fields.refuse("file", type(value).__name__, "a table of fields")
    _take(value, (), fields)
    _settle_memory(fields)
    return _profile(fields)


def _settle_memory(fields: _Fields) -> None:
    """``memory`` beside ``ram`` is the GPU's that is needed; alone either is the machine's."""
    if "ram" not in fields.found:
        return
    if "memory" in fields.found:
        fields.found.setdefault("need_gpu_memory", fields.found.pop("memory"))
    fields.found["memory"] = fields.found.pop("ram")


def _of_csv(file: str, text: str) -> dict[str, Any]:
    try:
        rows = [row for row in csv.reader(io.StringIO(text, newline=""), strict=True) if row]
    except csv.Error as error:
        raise OuvrageError(
            "profile/csv", f"{file} is no CSV: {error}", hint="close every quote"
        ) from error
    if not rows:
        return {}
    if all(len(row) == 2 for row in rows) and len(rows) != 2:
        pairs = rows[1:] if [c.strip().lower() for c in rows[0]] == ["name", "value"] else rows
        return {name.strip(): value.strip() for name, value in pairs}
    if len(rows) != 2 or len(rows[0]) != len(rows[1]):
        raise OuvrageError(
            "profile/csv",
            f"{file} holds {len(rows)} rows; a profile is one row under its names, or name,value",
            where=(f"{file}:1   {','.join(rows[0])}"[:200],),
            hint="write the names in the first line and the values in the second",
        )
    return {name.strip(): value.strip() for name, value in zip(*rows, strict=True)}


_ALIAS = {alias: name for name, group in NAMES.items() for alias in group}


def _take(value: Mapping[str, Any], path: tuple[str, ...], fields: _Fields) -> None:
    """Sort fields by the table they stand in; tables that mean nothing are looked into."""
    for key, held in value.items():
        name, where = str(key), ".".join((*path, str(key)))
        if isinstance(held, list) and name in _MEASURED:
            fields.timings += [each for each in held if isinstance(each, dict)]
        elif isinstance(held, dict):
            _take(held, (*path, name), fields)
        elif path and path[-1] in _TIMES:
            _take_time(name, held, where, fields)
        elif not _take_field(name, held, where, path, fields):
            fields.unknown.append(where)


def _take_time(name: str, held: Any, where: str, fields: _Fields) -> None:
    key = TIME.get(name.removesuffix("_s").removesuffix("_seconds"))
    seconds = number_in(held)
    if key is None:
        raise fields.refuse(where, name, f"one of {', '.join(KEYS)}")
    if seconds is None:
        raise fields.refuse(where, held, "seconds for one unit")
    fields.time[key] = fields.time.get(key, Fraction(0)) + seconds


def _take_field(name: str, held: Any, where: str, path: tuple[str, ...], fields: _Fields) -> bool:
    if name.removesuffix("_s") in TIME and name.endswith("_s") and name not in _ALIAS:
        _take_time(name, held, where, fields)
        return True
    for size in _SIZES:
        for alias in NAMES[size]:
            for suffix in _SUFFIX:
                if name == alias + suffix:
                    fields.put(where, size + suffix, held)
                    return True
    known = _ALIAS.get(name)
    if path and path[-1] in _NEEDS and f"need_{known}" in NAMES:
        known = f"need_{known}"
    if known is None:
        return False
    fields.put(where, known, held)
    return True


def _profile(fields: _Fields) -> Profile:
    timing, terms, notes = _timing(fields)
    deadline = fields.seconds("deadline")
    hours = fields.number("deadline_h", Fraction(3600))
    ips = fields.flag("public_ips") if isinstance(_value(fields, "public_ips"), bool) else None
    return Profile(
        unit=fields.text("unit") or "unit",
        units=_positive(fields, "units"),
        timing=timing,
        terms=terms,
        terms_grade=timing.grade,
        others=tuple(_others(fields)),
        startup_s=fields.seconds("startup") or Fraction(0),
        restart_s=fields.seconds("restart"),
        needs=Needs(
            gpu_memory_mib=fields.number("need_gpu_memory", Fraction(1024)),
            memory_mib=fields.number("need_memory", Fraction(1024)),
            vcpus=fields.number("need_vcpus"),
            disk_gb=fields.number("need_disk"),
            gpu=None if timing.on.gpus is None else timing.on.gpus > 0,
        ),
        moves=Moves(
            dataset_gb=fields.gb("dataset"),
            results_gb=fields.gb("results"),
            out_before_gb=fields.gb("out_before") or Fraction(0),
            egress_to=destination(fields.text("egress_to")),
            checkpoint_gb=fields.gb("checkpoint"),
            checkpoint_every_s=fields.seconds("checkpoint_every"),
            volume_gb=fields.gb("volume"),
            image_gb=fields.gb("image"),
            public_ips=int(ips) if ips is not None else int(fields.number("public_ips") or 0),
            reserved_h=fields.number("reserved"),
            exchange_gb=fields.gb("exchange"),
        ),
        interruptible=fields.flag("interruptible"),
        mtbf_h=fields.number("mtbf"),
        deadline_s=deadline if deadline is not None else hours,
        tax=_tax(fields),
        notes=(*notes, *(f"{name[:60]!r} means nothing here" for name in fields.unknown)),
    )


def destination(text: str | None) -> str | None:
    """A destination of traffic by the word that plans' prices are told apart by, else as written."""
    if text is None:
        return None
    word = " ".join(text.lower().replace("-", " ").replace("_", " ").split())
    word = word.replace("another ", "other ").replace("cross ", "other ")
    return word if word in DESTINATIONS else text


def tax_in(text: str) -> Fraction | None:
    """A rate of tax, as ``0.19`` or ``19 %``; None where it is none between 0 and 1."""
    number = number_in(text.strip().removesuffix("%").strip())
    if number is None:
        return None
    rate = number / 100 if text.strip().endswith("%") else number
    return rate if rate <= 1 else None


def _tax(fields: _Fields) -> Fraction | None:
    path, value = fields.found.get("tax", ("tax", None))
    if value is None or value == "":
        return None
    rate = None if isinstance(value, bool) else tax_in(str(value))
    if rate is None:
        raise fields.refuse(path, value, "a rate such as 0.19 or '19 %'")
    return rate


def _value(fields: _Fields, name: str) -> Any:
    return fields.found.get(name, (name, None))[1]


def _positive(fields: _Fields, name: str) -> Fraction | None:
    value = fields.number(name)
    if value == 0:
        raise fields.refuse(fields.found[name][0], "0", "a number above 0")
    return value


def _timing(fields: _Fields) -> tuple[Timing, dict[str, Fraction], list[str]]:
    """The unit's time and its terms: they agree, or one of them is not stated."""
    seconds, total = _positive(fields, "seconds_per_unit"), sum(fields.time.values(), Fraction(0))
    others = list(_others(fields))
    if seconds is None and not total and others:
        seconds = others[0].likely
        fields.found.setdefault("name", ("measured[0]", others[0].on.name or ""))
    if seconds is None and not total:
        raise fields.refuse(
            "seconds_per_unit", "nothing", "the seconds that one unit took, or a table [time]"
        )
    likely = total if seconds is None else seconds
    terms, notes = dict(fields.time), list[str]()
    if seconds is not None and abs(total - 1) < _ROUND and abs(seconds - 1) > _ROUND:
        # Parts that add up to one of something longer are shares of it.
        terms = {key: share * seconds / total for key, share in terms.items()}
        total = seconds
        notes.append("the parts of the time add up to 1 and are taken as shares")
    if total > likely:
        raise fields.refuse("time", f"{float(total):g} s", f"no more than {float(likely):g} s")
    if likely > total:
        terms["unknown"] = terms.get("unknown", Fraction(0)) + likely - total
        notes.append(f"{float(likely - total):g} s of a unit are not divided by cause: unknown")
    low, high = fields.number("low"), fields.number("high")
    grade = _grade(fields)
    if grade < Grade.REPORTED:
        notes.append(
            f"a time that was written down is reported, and never {grade.word}: --run measures"
        )
    timing = Timing(
        on=_configuration(fields, others),
        low=likely if low is None else min(low, likely),
        likely=likely,
        high=likely if high is None else max(high, likely),
        grade=max(grade, Grade.REPORTED),
        said_by=fields.text("said_by") or f"the profile {fields.file.rpartition('/')[2]}",
    )
    return timing, terms, notes


def _grade(fields: _Fields) -> Grade:
    word = fields.text("grade")
    if word is None:
        return Grade.ASSUMED
    try:
        return grade_of(word)
    except KeyError:
        raise fields.refuse("grade", word, ", ".join(each.word for each in Grade)) from None


def _configuration(fields: _Fields, others: list[Timing]) -> Configuration:
    if others and not {"gpu", "vcpus", "memory"} & set(fields.found):
        return others[0].on
    gpu, gpus = fields.text("gpu"), fields.number("gpus")
    if gpu is not None and gpu.lower() == "none":
        gpu, gpus = None, Fraction(0)
    return Configuration(
        name=fields.text("name"),
        provider=fields.text("provider"),
        gpu=None if gpu is None else model_of(gpu),
        gpus=Fraction(1) if gpu is not None and gpus is None else gpus,
        vcpus=fields.number("vcpus"),
        memory_mib=fields.number("memory", Fraction(1024)),
    )


def _others(fields: _Fields) -> Iterator[Timing]:
    """Times of the same work on other configurations, each in a table ``[[measured]]``."""
    for index, value in enumerate(fields.timings):
        inner = _Fields(f"{fields.file}: measured[{index}]")
        _take(value, (), inner)
        _settle_memory(inner)
        if {"name", "gpu", "vcpus"} & set(inner.found):
            timing, _, _ = _timing(inner)
            yield timing
        else:
            raise inner.refuse("name", "nothing", "the offer on which it was measured, or its gpu")
