"""A BMC that speaks Redfish, through sushy.

Decides which resources are asked for what: the system for its state, its restore policy and the two orders; the first chassis
for sensors, draw and limit; the system's or the manager's log services for events. A model's deviations are data
(``power_quirks``). Every call takes the BMC's turn, ends within its deadline, and leaves no session behind.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from ouvrage.adapters import redfish_form as form
from ouvrage.adapters.clock import monotonic_us
from ouvrage.adapters.power_port import PowerFault, page_after
from ouvrage.adapters.power_quirks import Quirk
from ouvrage.adapters.power_turn import bmc_at, turn
from ouvrage.base.errors import OuvrageError
from ouvrage.model.power import OFF, ON, UNKNOWN_STATE, LogPage, PowerLimit, Reading

Told = TypeVar("Told")

STATES = {"On": ON, "Off": OFF}
_ODD = (ValueError, TypeError, KeyError, AttributeError, RecursionError)
"""What the library stumbles over where an answer is JSON and no Redfish."""
_MOST_SENSORS = 128
_MOST_PAGES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """How a service is reached: ``pin`` is the SHA-256 of its certificate, ``ca`` a file of authorities."""

    address: str
    user: str | None
    password: Callable[[], str] | None
    pin: str | None = None
    ca: str | None = None
    session: bool = False
    system: str | None = None
    timeout_s: float = 20


class Redfish:
    """One system of one service."""

    kind = "redfish"

    def __init__(self, where: Where, quirk_of: Callable[[str, str], Quirk]) -> None:
        try:
            import sushy

            from ouvrage.adapters import redfish_link
        except ImportError as error:
            raise OuvrageError(
                "remote/extra", "Redfish is spoken through sushy, which is not installed",
                hint="pip install 'ouvrage[bmc]'",
            ) from error  # fmt: skip
        self._where = where
        self._sushy: Any = sushy
        self._lib: Any = redfish_link
        self._link: Any = None
        self._root: Any = None
        self._path: str | None = None
        self._links: Any = None
        self._quirk_of = quirk_of
        self.quirk = quirk_of("", "")

    def state(self) -> str:
        """What the system says; between the two it says neither."""
        with self._asking():
            return STATES.get(str(self._system().json.get("PowerState")), UNKNOWN_STATE)

    def turn_on(self) -> None:
        """``On``; ``ForceOn`` where it knows only that."""
        self._reset("On", "ForceOn")

    def turn_off(self, *, hard: bool = True) -> None:
        """``ForceOff``, or ``GracefulShutdown``."""
        self._reset("ForceOff" if hard else "GracefulShutdown")

    def _reset(self, *wanted: str) -> None:
        with self._asking():
            system = self._system()
            allowed = {each.value for each in system.get_allowed_reset_system_values()}
            chosen = next((each for each in wanted if each in allowed), None)
            if chosen is None:
                raise PowerFault(
                    "unsupported",
                    f"it does not know {wanted[0]}, only {', '.join(sorted(allowed))}",
                )
            system.reset_system(self._sushy.ResetType(chosen))

    def sensors(self) -> list[Reading]:
        """Those of the chassis, in the older form where it has that, else one by one."""
        with self._asking():
            chassis = self._chassis()
            told = form.of_thermal(self._under(chassis, "Thermal"))
            told += form.of_power(self._under(chassis, "Power"))
            if not told:
                told = self._single_sensors(chassis)
            return [each for each in told if not self.quirk.ignores(each.name)]

    def _single_sensors(self, chassis: Any) -> list[Reading]:
        found: list[Reading] = []
        for member in form.rows(self._under(chassis, "Sensors"), "Members")[:_MOST_SENSORS]:
            address = form.address_in(member)
            whole = "Reading" in member or address is None
            found += form.of_sensor(member if whole else self._get(address))
        return found

    def power_w(self) -> Reading | None:
        """What it draws."""
        with self._asking():
            chassis = self._chassis()
            for name in ("EnvironmentMetrics", "Power"):
                told = form.draw_of(self._under(chassis, name))
                if told is not None:
                    return told
            return None

    def restore_policy(self) -> str | None:
        """``PowerRestorePolicy`` of the system, or where a quirk says it stands."""
        with self._asking():
            told = self._system().json.get("PowerRestorePolicy")
            if told is None and self.quirk.restore_at:
                place, *path, last = self.quirk.restore_at
                told = form.under(self._under(self._chassis(), place), *path).get(last)
            return form.RESTORES.get(str(told))

    def events(self, after: str | None = None) -> LogPage:
        """The first log of the system, else of its manager, that holds entries and is no audit of logins."""
        with self._asking():
            for services in self._log_services():
                for member in form.rows(services, "Members"):
                    log = self._get(form.address_in(member))
                    if str(form.under(log).get("Id", "")).lower() in self.quirk.not_logs:
                        continue
                    return self._page(log, after)
        raise PowerFault("unsupported", "it keeps no event log that can be read")

    def _log_services(self) -> Iterator[Any]:
        system = self._system().json
        yield self._under(system, "LogServices")
        for manager in form.rows(form.under(system, "Links"), "ManagedBy"):
            yield self._under(self._get(form.address_in(manager)), "LogServices")

    def _page(self, log: Any, after: str | None) -> LogPage:
        members: list[Any] = []
        address, read = form.address_in(log, "Entries"), set[str]()
        while address is not None and address not in read and len(read) < _MOST_PAGES:
            read.add(address)
            page = self._get(address)
            members += form.rows(page, "Members", None)
            following = form.under(page).get("Members@odata.nextLink")
            address = following if isinstance(following, str) else None
        most = form.whole(form.under(log).get("MaxNumberOfRecords"))
        used = min(100, 100 * len(members) // most) if most else None
        if form.under(log).get("OverWritePolicy") == "WrapsWhenFull":
            used = None  # it never is full
        told = page_after(form.entries_of(members), after, used)
        return replace(told, gap=True) if address is not None else told  # some were left unread

    def power_limit(self) -> PowerLimit:
        """The limit, and what it may be."""
        with self._asking():
            return self._limit()[1]

    def _limit(self) -> tuple[str, PowerLimit]:
        """The address of the resource that holds the limit, and the limit."""
        chassis = self._chassis()
        for name in ("EnvironmentMetrics", "Power"):
            address = form.address_in(chassis, name)
            found = form.limit_of(self._get(address)) if address else None
            if address and found is not None:
                return address, found
        raise PowerFault("unsupported", "its power cannot be limited over Redfish")

    def set_power_limit(self, watts: int | None) -> None:
        """Change the limit where it stands."""
        with self._asking():
            address, now = self._limit()
            least, most = now.least, now.most
            if watts is not None and not (least or 1) <= watts <= (most or watts):
                raise PowerFault(
                    "failed", f"{watts} W is outside {least or 1} to {most} W, which it allows"
                )
            if address.rstrip("/").endswith("Power"):
                body: Any = {"PowerControl": [{"PowerLimit": {"LimitInWatts": watts}}]}
            elif watts is None:
                body = {"PowerLimitWatts": {"ControlMode": "Disabled"}}
            else:
                body = {"PowerLimitWatts": {"SetPoint": watts, "ControlMode": "Automatic"}}
            etag = self._link.get(address).headers.get("ETag")
            self._link.patch(address, data=body, etag=etag)

    def _signed_in(self) -> Any:
        """The service, which is told with each request who asks."""
        if self._root is None:
            user, secret = self._where.user, self._where.password
            signed = self._lib.sign_in(
                user, secret() if secret else None, session=self._where.session
            )
            self._root = self._sushy.Sushy(self._where.address, connector=self._link, auth=signed)
        return self._root

    def _system(self) -> Any:
        """The system, read anew."""
        root = self._signed_in()
        path = self._path or (self._where.system and f"/redfish/v1/Systems/{self._where.system}")
        system = root.get_system(path)
        self._path = system.path
        self.quirk = self._quirk_of(
            str(system.json.get("Manufacturer")), str(system.json.get("Model"))
        )
        return system

    def _chassis(self) -> Any:
        """The first chassis of the system: its links, which stay what they are, so that it is read once."""
        if self._links is None:
            links = form.rows(form.under(self._system().json, "Links"), "Chassis")
            self._links = self._get(form.address_in(links[0])) if links else {}
        return self._links

    def _under(self, resource: Any, name: str) -> Any:
        address = form.address_in(resource, name)
        with contextlib.suppress(self._sushy.exceptions.ResourceNotFoundError):
            return self._get(address)
        return {}

    def _get(self, address: str | None) -> Any:
        return self._link.get(address).json() if address else {}

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """The BMC's turn, one deadline for all of it, and errors of the library as faults."""
        where = self._where
        with turn(bmc_at(where.address), where.timeout_s):
            if self._link is None:
                self._link = self._lib.Link(where.address, pin=where.pin, ca=where.ca)
            self._link.until(monotonic_us() + int(where.timeout_s * 1_000_000))
            try:
                yield
            except (self._sushy.exceptions.SushyError, *_ODD) as error:
                raise self._told(self._lib.fault_of(error, self.quirk.busy_words)) from error
            finally:
                if where.session:
                    self._leave()

    def _told(self, fault: PowerFault) -> PowerFault:
        """A fault; one about a certificate says which one was shown, so that its owner can compare and pin it."""
        if fault.kind != "untrusted":
            return fault
        shown = self._lib.certificate_shown(self._where.address, self._where.timeout_s)
        return PowerFault(fault.kind, f"{fault}; it shows sha256:{shown}") if shown else fault

    def _leave(self) -> None:
        """Give a session's token back: a BMC has few of them."""
        root, self._root = self._root, None
        if root is not None:
            with contextlib.suppress(
                Exception
            ):  # the answer is had; a BMC ends idle sessions itself
                root._auth.close()
            root._auth = None
