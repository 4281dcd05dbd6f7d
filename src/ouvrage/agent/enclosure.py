"""Everything that must stand before a command of a tenant's may start, and be gone afterwards.

Decides what an order becomes on this machine: space of a limited size, a control group with its
limits, the view of the file system, as whom it runs. All mounts are made in this process's own mount
namespace, so they go with it. It starts nothing and judges nothing; ``supervisor`` does.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ouvrage.adapters import bubblewrap, egress, own_mounts, podman, scratch, seccomp
from ouvrage.adapters.beneath import copy_below
from ouvrage.adapters.bubblewrap import METER, RESERVED, Bind, View
from ouvrage.adapters.prepared import Prepared
from ouvrage.adapters.sandbox_cgroup import Group, Limits, group
from ouvrage.agent.files import CONTAINER, INPUTS, NETWORK, OUTPUTS, AttemptFiles
from ouvrage.base.canonical import sha256_hex
from ouvrage.base.errors import OuvrageError
from ouvrage.meter.launch import find_command
from ouvrage.wire.runner import File, Start

STAGE = "/run/ouvrage"
"""A public directory under which this process mounts what a sandbox is to see."""

ETC = "etc"
"""In the state directory: what every sandbox of it sees as ``/etc``."""

UIDS = 1_900_000_000
"""The first user id of a project on a node: numbers that no distribution gives to anybody."""

MOST_UIDS = 18_000
_FIRST_CONTAINER_ID = 700_000_000
_LISTS = ("see", "nodes", "deny", "registries")
_STAGE_BYTES = 1 << 20
_OPEN_FILES = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """An order with what this node adds: as whom it runs, what else it sees, its device nodes.

    ``deny`` are networks of the owner's that no job reaches, beside those that are denied anyway;
    ``registries`` those from which images may come.
    """

    start: Start
    uid: int
    see: tuple[str, ...]
    nodes: tuple[str, ...]
    deny: tuple[str, ...] = ()
    registries: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """For the disk; secrets are kept apart, in a file that is read once."""
        start = self.start.model_dump(mode="json", exclude={"secrets"}) | {"secrets": []}
        own = {name: getattr(self, name) for name in ("uid", *_LISTS)}
        return {"start": start, **own}

    @classmethod
    def of(cls, kept: dict[str, Any]) -> Order:
        """The same, read back."""
        start = Start.model_validate(kept["start"])
        lists = {name: tuple(kept[name]) for name in _LISTS}
        return cls(start=start, uid=kept["uid"], **lists)


@dataclass(slots=True)
class Enclosure:
    """What was made for one attempt."""

    state: Path
    files: AttemptFiles
    order: Order
    cgroup: Group
    space: scratch.Space | None = None
    way: egress.WayOut | None = None
    kept: list[tuple[scratch.Space, int]] = field(default_factory=list)
    binds: list[Bind] = field(default_factory=list)

    @classmethod
    def of(cls, state: Path, files: AttemptFiles, order: Order) -> Enclosure:
        """Nothing made yet."""
        return cls(
            state=state,
            files=files,
            order=order,
            cgroup=group(group_name(state, order.start.attempt)),
        )

    def make(self) -> None:
        """Make it all. Raises ``OuvrageError``."""
        start = self.order.start
        workdir = place(start.workdir, None)
        try:
            own_mounts.keep_to_myself()
            own_mounts.tmpfs(STAGE, _STAGE_BYTES)
        except OSError as error:
            raise OuvrageError(
                "sandbox/not-root",
                f"no mounts of its own for the attempt: {error.strerror}",
                hint="the agent must run as root",
            ) from error
        self.make_space()
        self._stage(str(self.state / ETC), "etc")
        for number, path in enumerate(self.order.see):
            self._show(path, path, f"see-{number}")
        for number, each in enumerate(start.inputs):
            source = str(self.files / INPUTS / each.name)
            self._show(source, place(each.path, workdir), f"in-{number}")
        self._keep_spaces()
        if start.network == "egress":
            self.way = egress.open_way(start.egress, self.order.deny)
            self.files.write(NETWORK, {"number": self.way.number})
        self.cgroup.create(
            Limits(
                memory_bytes=start.memory_mib << 20,
                cpus=tuple(start.cpus),
                quota_ppm=None,
                pids=start.pids,
            )
        )

    def make_space(self) -> None:
        """Its own directory and /tmp, on space of a limited size."""
        image = self.files / "scratch.img"
        models = self.state / "models"
        self.space = scratch.fresh(image, f"{STAGE}/scratch", self.order.start.disk_mib, models)
        for name, mode, owner in (("own", 0o700, self.owner), ("temporary", 0o1777, 0)):
            path = f"{self.space.at}/{name}"
            os.mkdir(path)
            os.chmod(path, mode)
            os.chown(path, owner, owner)

    def _keep_spaces(self) -> None:
        """Checkpoint and volumes: they outlive this attempt."""
        start = self.order.start
        wanted = [(Path("projects", start.project, f"{v.name}.img"), v.path) for v in start.volumes]
        if start.checkpoint is not None:
            wanted.append((Path("jobs", start.job, "checkpoint.img"), start.checkpoint))
        for number, (image, path) in enumerate(wanted):
            at = f"{STAGE}/kept-{number}"
            held = scratch.kept(self.state / image, at, start.disk_mib, self.owner)
            self.kept.append(held)
            target = place(path, None if path.startswith("/") else place(start.workdir, None))
            self.binds.append(Bind(source=at, target=target, writable=True))

    def _show(self, source: str, target: str, name: str) -> None:
        self.binds.append(Bind(source=self._stage(source, name), target=target))

    def _stage(self, source: str, name: str) -> str:
        """Bind it where the sandbox's user can reach it, whoever may look into its parents."""
        at = f"{STAGE}/{name}"
        try:
            if os.path.isdir(source):
                os.mkdir(at)
            else:
                os.close(os.open(at, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
            own_mounts.bind(source, at, writable=False)
        except OSError as error:
            raise OuvrageError(
                "sandbox/not-shown", f"{source} cannot be shown: {error.strerror}"
            ) from error
        return at

    def take_outputs(self) -> list[str]:
        """Copy what is to come out; what could not be had, in words. Nothing runs there any more."""
        outputs, space = self.order.start.outputs, self.space
        if not outputs or space is None:
            return []
        directory = self.files / OUTPUTS
        directory.mkdir(mode=0o700, exist_ok=True)
        workdir = place(self.order.start.workdir, None)
        faults: list[str] = []
        for each in outputs:
            try:
                inside = place(each.path, workdir).removeprefix(f"{workdir}/")
                copy_below(f"{space.at}/own", inside, directory / each.name)
            except FileNotFoundError:
                faults.append(f"output {each.path!r} is not there")
            except OuvrageError as error:
                faults.append(f"output {each.name!r}: {error.message}")
            except (OSError, ValueError) as error:
                why = error.strerror if isinstance(error, OSError) else error
                faults.append(f"output {each.path!r} was not taken: {why}")
        return faults

    @property
    def owner(self) -> int:
        """The machine's number of the user whose the attempt's files are."""
        uid = self.order.uid
        return first_id(uid) + bubblewrap.USER if self.order.start.isolation == "podman" else uid

    def let_go(self) -> list[str]:
        """Give up what is kept, so that the next attempt finds it free; what could not be, in words."""
        return [
            f"{space.image.stem} is still in use"
            for space, lock in self.kept
            if not scratch.let_go(space, lock)
        ]

    def told(
        self, secrets: Sequence[dict[str, str]], socket: str
    ) -> tuple[dict[str, str], list[Bind]]:
        """The command's environment and everything it sees, the way to the meter included."""
        told = {pair.name: pair.value for pair in self.order.start.environment}
        told |= {pair["name"]: pair["value"] for pair in secrets}
        if not socket:
            return told, list(self.binds)
        directory = os.path.dirname(socket)
        os.chown(directory, self.owner, self.owner)
        os.chown(socket, self.owner, self.owner)
        told["OUVRAGE_SOCKET"] = f"{METER}/{os.path.basename(socket)}"
        return told, [*self.binds, Bind(source=directory, target=METER)]

    def prepared(self, secrets: Sequence[dict[str, str]], socket: str, status: int) -> Prepared:
        """How to start the command; called by the process that will."""
        isolation = self.order.start.isolation
        if isolation == "podman":
            return self._container(secrets, socket)
        if isolation == "none":
            return self._bare(secrets, socket)
        start, space = self.order.start, self.space
        assert space is not None
        told, binds = self.told(secrets, socket)
        view = View(
            etc=f"{STAGE}/etc",
            work=f"{space.at}/own",
            tmp=f"{space.at}/temporary",
            workdir=place(start.workdir, None),
            binds=tuple(binds),
            devices=self.order.nodes,
            environment=told,
            network=self.way is not None,
            hosts=self.way.hosts if self.way else (),
            resolver=self.way.resolver if self.way else "",
            shm_bytes=max(1 << 20, start.memory_mib << 19),
        )
        filter_ = seccomp.descriptor()
        return bubblewrap.prepare(view, start.command, filter_, status, self.order.uid)

    def _container(self, secrets: Sequence[dict[str, str]], socket: str) -> Prepared:
        start, space = self.order.start, self.space
        assert space is not None
        assert start.image is not None
        told, binds = self.told(secrets, socket)
        workdir = place(start.workdir, None)
        own = [(f"{space.at}/own", workdir, True), (f"{space.at}/temporary", bubblewrap.TMP, True)]
        made = podman.Container(
            name=container_name(start.attempt),
            image=start.image,
            group=group_name(self.state, start.attempt),
            first_id=first_id(self.order.uid),
            workdir=workdir,
            environment={"HOME": workdir, **told},
            binds=(*own, *((b.source, b.target, b.writable) for b in binds)),
            devices=tuple(f"{podman.GPUS}={card}" for card in start.devices),
            space=self.way.name if self.way else None,
            hosts=self.way.hosts if self.way else (),
            resolver=self.way.resolver if self.way else "",
            memory_bytes=start.memory_mib << 20,
            pids=start.pids,
        )
        directory = self.files / CONTAINER
        directory.mkdir(mode=0o700, exist_ok=True)
        return podman.Podman(self.state).prepare(made, start.command, directory)

    def _bare(self, secrets: Sequence[dict[str, str]], socket: str) -> Prepared:
        """The owner's own work: limits and an account, and nothing kept from it."""
        start, space = self.order.start, self.space
        assert space is not None
        told, _ = self.told(secrets, "")
        if socket:
            told["OUVRAGE_SOCKET"] = socket
        path = find_command(start.command[0])
        return Prepared(
            path=path,
            argv=list(start.command),
            environment={**bubblewrap.ENVIRONMENT, "HOME": f"{space.at}/own", **told},
            directory=f"{space.at}/own",
            descriptors=(),
            uid=None,
            joins=True,
            tells=False,
        )

    def become(self, prepared: Prepared) -> None:
        """In the child: take the limits, become nobody of this machine, then what was prepared."""
        if prepared.joins:
            self.cgroup.join()
            self._take_limits()
            if self.way is not None:
                own_mounts.enter_network(self.way.space)
        if prepared.uid is not None:
            os.setgroups([])
            os.setresgid(prepared.uid, prepared.uid, prepared.uid)
            os.setresuid(prepared.uid, prepared.uid, prepared.uid)
        os.chdir(prepared.directory)
        for fd in prepared.descriptors:
            os.set_inheritable(fd, True)
        os.execve(  # noqa: S606 -- no shell is the point
            prepared.path, prepared.argv, dict(prepared.environment)
        )

    def _take_limits(self) -> None:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, _OPEN_FILES)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def first_id(uid: int) -> int:
    """User 0 of the containers of the project that has this user id: 65,536 numbers of its own."""
    return _FIRST_CONTAINER_ID + (uid - UIDS) * podman.IDS


def container_name(attempt: str) -> str:
    """The name of an attempt's container."""
    return f"{podman.NAME}{attempt}"


def group_name(state: Path, attempt: str) -> str:
    """The name of an attempt's control group; its beginning is this node's alone."""
    return f"{group_prefix(state)}{attempt}"


def group_prefix(state: Path) -> str:
    """What sets this state directory's groups apart from those of another on the same machine."""
    return f"{sha256_hex(os.path.realpath(state))[:8]}-"


def place(path: str, below: str | None) -> str:
    """A path of a job's, absolute and plain. Raises ``OuvrageError`` ``sandbox/path``.

    Relative ones are meant from ``below``; with it, absolute ones must lie there as well.
    """
    parts = [part for part in path.split("/") if part not in ("", ".")]
    whole = "/" + "/".join(parts) if path.startswith("/") else f"{below}/{'/'.join(parts)}"
    why = None
    if not parts or "\0" in path or ".." in parts:
        why = "it must name a place, without .."
    elif below is None and not path.startswith("/"):
        why = "it must begin with /"
    elif any(whole == each or whole.startswith(f"{each}/") for each in RESERVED):
        why = "that place is the system's"
    elif below is not None and not whole.startswith(f"{below}/"):
        why = f"it must lie below the working directory {below}"
    if why:
        raise OuvrageError("sandbox/path", f"{path!r} cannot be used: {why}")
    return whole


def named(files: Sequence[File]) -> None:
    """Check that the names that files travel by are names and no ways out of a directory."""
    for each in files:
        if not each.name or each.name in (".", "..") or set(each.name) & set("/\0"):
            raise OuvrageError("sandbox/name", f"{each.name!r} is no name of a file")
