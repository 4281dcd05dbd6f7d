"""A job as a tenant writes it: every field of the job file, what it may be, and what it is where left out.

Decides how a plain mapping (from YAML, JSON or flags, which say the same things) becomes a ``JobSpec``, and that each
refusal names the field, what was found, what was expected and what to do. A field nobody knows is refused: a misspelt
limit would otherwise be no limit. What the offer or the platform allows beyond that is checked against them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from ouvrage.base.errors import OuvrageError
from ouvrage.base.text import safe
from ouvrage.base.time import SECOND
from ouvrage.model.selling import OwnOffer, Placed
from ouvrage.model.work import ISOLATIONS, NETWORKS, RESTARTS, JobSpec
from ouvrage.placement import spec_values as values
from ouvrage.placement.places import model_name
from ouvrage.placement.snapshot import Needs
from ouvrage.pricing.rates.places import Located, field_name

CODE = "job/field"
GUIDE = "docs/guides/job-file.md describes every field"
WORKDIR = "/scratch"
"""Where a command starts: the attempt's own scratch space."""
GRACE_US = 30 * SECOND
ALONE = Needs(cpus=1, memory_mib=1024, disk_mib=1024)
"""What a job gets that asks for nothing, where no offer says otherwise."""


class FieldError(OuvrageError):
    """A field that cannot stand: ``field``, what was ``found`` there and what was ``expected``."""

    def __init__(
        self,
        field: str,
        found: str,
        expected: str,
        *,
        where: tuple[str, ...] = (),
        hint: str = GUIDE,
    ) -> None:
        super().__init__(CODE, f"{field} is {found}; expected {expected}", where=where, hint=hint)
        self.field = field
        self.found = found
        self.expected = expected

    def as_json(self) -> dict[str, Any]:
        """The refusal with its parts apart."""
        told = super().as_json()
        told["error"] |= {"field": self.field, "found": self.found, "expected": self.expected}
        return told


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field: how it is read, its flag, and what it means. ``many``: the flag may come several times.

    ``default`` is the value where it is left out; ``shown`` the default in words; ``example`` a value as it is written.
    """

    name: str
    read: values.Read
    default: Any
    flag: str
    example: str
    shown: str
    words: str
    many: bool = False


FIELDS: tuple[Field, ...] = (
    Field(name="name", read=values.slug, default=None, flag="--name", example="train-resnet",
          shown="from the command", words="What the job is called, in lists and by `after`."),
    Field(name="command", read=values.command, default=None, flag="-- COMMAND", example="[python, train.py]",
          shown="must be given", words="What to run: a list of words as they are, or one text for `/bin/sh`."),
    Field(name="image", read=values.image, default=None, flag="--image", example="docker.io/library/python:3.11",
          shown="none: the node's own programs", words="An OCI image to run the command in."),
    Field(name="isolation", read=values.one_of(*ISOLATIONS), default=None, flag="--isolation", example="sandbox",
          shown="the offer's; `podman` with an image, else `sandbox`",
          words="How it is kept apart. `none` is for the owner's own projects alone."),
    Field(name="gpus", read=values.gpus, default=None, flag="--gpus", example="1",
          shown="the offer's, else 0", words="Whole GPUs, all of one model, on one node."),
    Field(name="gpu", read=values.model, default=None, flag="--gpu", example="RTX 4090",
          shown="the offer's, else any", words="The GPU's model."),
    Field(name="cpus", read=values.count(1, 4096), default=None, flag="--cpus", example="8",
          shown="the offer's, else 1", words="Whole cores, held by nobody else meanwhile."),
    Field(name="memory", read=values.size_mib, default=None, flag="--memory", example="32GiB",
          shown="the offer's, else 1GiB", words="Memory. What needs more is ended and told so."),
    Field(name="disk", read=values.size_mib, default=None, flag="--disk", example="100GB",
          shown="the offer's, else 1GiB", words="Scratch space, erased after each attempt."),
    Field(name="environment", read=values.environment, default=(), flag="--env", example="{SEED: 7}", many=True,
          shown="nothing", words="Variables: a mapping, or a list of `NAME=VALUE`."),
    Field(name="secrets", read=values.secrets, default=(), flag="--secret", example="{API_KEY: my-key}", many=True,
          shown="nothing", words="Variables that hold secrets of the project, by the secret's name."),
    Field(name="inputs", read=values.files, default=(), flag="--input", example="{data/train.csv: train.csv}", many=True,
          shown="nothing", words="Files brought in: path in the sandbox, and the name it was sent by."),
    Field(name="outputs", read=values.files, default=(), flag="--output", example="{out/model.pt: model.pt}", many=True,
          shown="nothing", words="Files kept at the end: path in the sandbox, and the name to fetch it by."),
    Field(name="volumes", read=values.volumes, default=(), flag="--volume", example="{/data: imagenet}", many=True,
          shown="nothing", words="The project's volumes, and where each stands in the sandbox."),
    Field(name="workdir", read=values.absolute, default=WORKDIR, flag="--workdir", example="/scratch",
          shown=f"`{WORKDIR}`", words="Where the command starts."),
    Field(name="checkpoint", read=values.path, default=None, flag="--checkpoint", example="checkpoints",
          shown="none", words="A path that is kept from one attempt to the next."),
    Field(name="unit", read=values.slug, default=None, flag="--unit", example="epoch",
          shown="found by the meter", words="What one finished piece of the work is called."),
    Field(name="unit_regex", read=values.expression, default=None, flag="--unit-regex", example="'^epoch (\\d+)'",
          shown="found by the meter", words="The lines of output that mark a finished unit. Needs `unit`."),
    Field(name="network", read=values.one_of(*NETWORKS), default=None, flag="--network", example="egress",
          shown="`none`; `egress` where `egress` is given", words="Whether it may reach anything outside."),
    Field(name="egress", read=values.words_list(values.destination), default=(), flag="--egress",
          example="[example.org:443]", many=True, shown="all that the owner allows",
          words="The only hosts and networks it may reach."),
    Field(name="port", read=values.count(1, 65535), default=None, flag="--port", example="8000",
          shown="none", words="The port on which a service listens."),
    Field(name="health", read=values.address_path, default=None, flag="--health", example="/health",
          shown="whether the port answers", words="The address that says a service is well. Needs `port`."),
    Field(name="restart", read=values.one_of(*RESTARTS), default="never", flag="--restart", example="on-failure",
          shown="never", words="When a service that ended is started again. Needs `port`."),
    Field(name="retries", read=values.count(0, 100), default=0, flag="--retries", example="2",
          shown="0", words="Further attempts after the program failed. A machine's failure is always tried elsewhere."),
    Field(name="time_limit", read=values.duration_us, default=None, flag="--time-limit", example="2h",
          shown="the offer's or lease's end", words="The longest that one attempt may run. Short limits start sooner."),
    Field(name="grace", read=values.duration_us, default=GRACE_US, flag="--grace", example="60 s",
          shown="30 s", words="From SIGTERM to SIGKILL, for writing a checkpoint."),
    Field(name="priority", read=values.count(-1000, 1000), default=0, flag="--priority", example="10",
          shown="0", words="Orders your project's own jobs, higher first; not against others'."),
    Field(name="budget", read=values.money, default=None, flag="--budget", example="5.00",
          shown="the project's", words="The most that the job may cost, all attempts together."),
    Field(name="deadline", read=values.moment_us, default=None, flag="--deadline", example="2026-12-01T08:00:00Z",
          shown="none", words="When it must have ended; it is not started too late for that."),
    Field(name="interruptible", read=values.flag, default=False, flag="--interruptible", example="true",
          shown="false", words="Whether it may be interrupted, after notice, for work that ranks before it."),
    Field(name="after", read=values.words_list(values.slug), default=(), flag="--after", example="[prepare]", many=True,
          shown="nothing", words="Jobs, by name or id, that must be done first."),
    Field(name="stop_idle", read=values.duration_us, default=None, flag="--stop-idle", example="30 min",
          shown="only warn", words="Stop it when its GPUs stood idle for so long."),
)  # fmt: skip
"""Every field of a job file, in the order in which it is described."""

_BY_NAME = {field.name: field for field in FIELDS}
_INTERPRETERS = re.compile(r"(?:python[0-9.]*|bash|sh|env|nice|torchrun|accelerate)")


def job_spec(data: object, source: Located | None = None, defaults: Needs | None = None) -> JobSpec:
    """A job from a plain mapping; ``FieldError`` for the first field that cannot stand.

    ``source`` knows the lines of the file, where there is one; ``defaults`` are the offer's configuration
    (``needs_of_offer``), for what is left out.
    """
    return _Reading(data, source).spec(defaults or ALONE)


class _Reading:
    """A mapping being read, and where its fields stand."""

    def __init__(self, data: object, source: Located | None) -> None:
        self._source = source
        if not isinstance(data, Mapping):
            raise FieldError(
                "the job", shown(data), "a mapping of fields such as command", where=self._where()
            )
        self._data = data
        for key in data:
            if key not in _BY_NAME:
                raise self._unknown(key)
        self._got = {field.name: self._read(field) for field in FIELDS}

    def _where(self, *path: str | int) -> tuple[str, ...]:
        return (self._source.where(path),) if self._source else ()

    def _unknown(self, key: object) -> FieldError:
        name = safe(key)[:60] if isinstance(key, str) else shown(key)
        near = get_close_matches(name.replace("-", "_").lower(), _BY_NAME, n=1)
        known = f"{near[0]!r}" if near else f"one of {', '.join(_BY_NAME)}"
        where = self._where(key) if isinstance(key, str) else self._where()
        return FieldError(name, "no field of a job", known, where=where)

    def _read(self, field: Field) -> Any:
        given = self._data.get(field.name)
        if given is None:
            return field.default
        try:
            return field.read(given)
        except values.Wrong as error:
            raise self.refuse(field.name, shown(error.found), str(error), error.path) from error
        except ValueError as error:
            raise self.refuse(field.name, shown(given), str(error)) from error

    def refuse(
        self, name: str, found: str, expected: str, inside: tuple[str | int, ...] = ()
    ) -> FieldError:
        """The refusal of a field, or of a part of it, with its line and an example."""
        hint = f"for example {name}: {_BY_NAME[name].example}; {GUIDE}"
        told = safe(field_name((name, *inside)))[:200]
        return FieldError(told, found, expected, where=self._where(name, *inside), hint=hint)

    def spec(self, defaults: Needs) -> JobSpec:
        """The job, once its fields were held against one another."""
        got = self._got
        if got["command"] is None:
            raise self.refuse("command", "missing", "what to run")
        if got["unit_regex"] and not got["unit"]:
            raise self.refuse("unit", "missing", "the name of what unit_regex marks")
        if got["egress"] and got["network"] == "none":
            raise self.refuse("network", "none", "egress, since egress is given")
        if got["port"] is None and (got["health"] or got["restart"] != "never"):
            raise self.refuse(
                "port", "missing", "the port of the service that health and restart are about"
            )
        if got["image"] and got["isolation"] not in (None, "podman"):
            raise self.refuse("isolation", got["isolation"], "podman, since an image is given")
        isolation = "podman" if got["image"] else got["isolation"] or defaults.isolation
        if isolation == "podman" and not got["image"]:
            raise self.refuse("image", "missing", "an image, which podman needs")
        gpus = _or(got["gpus"], defaults.gpus)
        if got["gpu"] and not gpus:
            raise self.refuse("gpus", str(gpus), "at least 1, since gpu is given")
        return JobSpec(
            name=got["name"] or name_from(got["command"]),
            command=got["command"],
            image=got["image"],
            isolation=isolation,
            gpus=gpus,
            gpu=(got["gpu"] or defaults.gpu) if gpus else None,
            cpus=_or(got["cpus"], defaults.cpus),
            memory_mib=_or(got["memory"], defaults.memory_mib),
            disk_mib=_or(got["disk"], defaults.disk_mib),
            network=got["network"] or ("egress" if got["egress"] else "none"),
            time_limit_us=got["time_limit"],
            grace_us=got["grace"],
            deadline_us=got["deadline"],
            stop_idle_us=got["stop_idle"],
            **{name: got[name] for name in _AS_THEY_ARE},
        )


_AS_THEY_ARE = (
    *("environment", "secrets", "inputs", "outputs", "volumes", "workdir", "checkpoint", "unit"),
    *("unit_regex", "egress", "port", "health", "restart", "retries", "priority", "budget"),
    *("interruptible", "after"),
)


def _or(given: int | None, default: int) -> int:
    return default if given is None else given


def shown(value: object) -> str:
    """What was found, short and safe to print."""
    if isinstance(value, str):
        return repr(safe(value[:80])) + ("…" if len(value) > 80 else "")
    if isinstance(value, Mapping):
        return f"a mapping of {len(value)}"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    if isinstance(value, int) and abs(value) >= 10**30:
        return "a number of more than 30 digits"
    return safe(str(value)[:80])


_SHELLS = ("sh", "bash", "dash")


def name_from(command: tuple[str, ...]) -> str:
    """A job's name where none is given: the script's or the program's, as a slug."""
    if len(command) > 2 and command[0].rpartition("/")[2] in _SHELLS and command[1] == "-c":
        command = tuple(command[2].split()) or ("job",)
    candidates = [word.rpartition("/")[2] for word in command if not word.startswith("-")]
    scripts = [word for word in candidates if word.endswith((".py", ".sh"))]
    programs = [word for word in candidates if not _INTERPRETERS.fullmatch(word)]
    chosen = (scripts or programs or candidates or ["job"])[0].partition(".")[0].lower()
    return re.sub(r"[^a-z0-9]+", "-", chosen[:200]).strip("-")[:63].strip("-") or "job"


# Flags


def from_flags(given: Mapping[str, Any]) -> dict[str, Any]:
    """The mapping that flags stand for: what was not given is left out. Keys are the fields' names."""
    return {name: value for name, value in given.items() if value not in (None, (), [])}


def merged(file: Mapping[str, Any], flags: Mapping[str, Any]) -> dict[str, Any]:
    """A file's mapping with flags over it; flags that may come several times add to what the file says."""
    result = dict(file)
    for name, value in flags.items():
        field = _BY_NAME.get(name)
        before = result.get(name)
        result[name] = _joined(before, list(value)) if field and field.many and before else value
    return result


def _joined(before: Any, flags: list[Any]) -> Any:
    if not isinstance(before, Mapping):
        return [*(before if isinstance(before, list | tuple) else [before]), *flags]
    over = dict(before)
    for item in flags:
        left, equals, right = str(item).partition("=")
        over[left] = right if equals else left
    return over


# What is placed


def needs_of(spec: JobSpec, nodes: tuple[str, ...] = ()) -> Needs:
    """What a job takes of its own lease."""
    return Needs(
        gpus=spec.gpus,
        gpu=spec.gpu,
        cpus=spec.cpus,
        memory_mib=spec.memory_mib,
        disk_mib=spec.disk_mib,
        isolation=spec.isolation,
        nodes=nodes,
    )


def needs_of_offer(offer: OwnOffer, isolation: str | None = None) -> Needs:
    """What an offer's configuration takes of a node; a job's own ``isolation`` may be stricter than the offer's."""
    return Needs(
        gpus=offer.gpus,
        gpu=offer.gpu,
        cpus=offer.cpus,
        memory_mib=offer.memory_mib,
        disk_mib=offer.disk_mib,
        isolation=isolation or offer.isolation,
        nodes=offer.nodes,
    )


def check_within(spec: JobSpec, has: OwnOffer | Placed, what: str) -> None:
    """Refuse a job that asks for more than the configuration it is to run in (``what``: its name, for the refusal)."""
    gpus = has.gpus if isinstance(has, OwnOffer) else len(has.devices)
    cpus = has.cpus if isinstance(has, OwnOffer) else len(has.cpus)
    pairs = (
        ("gpus", spec.gpus, gpus, ""),
        ("cpus", spec.cpus, cpus, ""),
        ("memory", spec.memory_mib, has.memory_mib, " MiB"),
        ("disk", spec.disk_mib, has.disk_mib, " MiB"),
    )
    for name, asked, there, unit in pairs:
        if asked > there:
            hint = f"ask for less, or choose another than {what}"
            raise FieldError(
                name, f"{asked}{unit}", f"at most {there}{unit}, which {what} has", hint=hint
            )
    if isinstance(has, OwnOffer) and spec.gpu and has.gpu and not same_gpu(spec.gpu, has.gpu):
        raise FieldError(
            "gpu", spec.gpu, f"{has.gpu}, which {what} has", hint="choose another offer"
        )


def same_gpu(one: str, other: str) -> bool:
    """Whether two spellings mean one model."""
    return model_name(one) == model_name(other)
