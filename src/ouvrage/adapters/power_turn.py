"""One request at a time for each BMC, whichever of this machine's programs asks; and asking again, later and later.

Decides how programs of one machine take turns (a name in the kernel that is gone with its holder; programs in another
network namespace, such as a container's, and on other machines do not see it), what counts as one BMC, how long one waits for
its turn, and after what a question is worth repeating. BMCs are slow and small: some stop answering when two ask at once.
An order is never repeated here, because it may have been carried out.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from ouvrage.adapters.clock import monotonic_us
from ouvrage.adapters.power_port import PowerFault

Told = TypeVar("Told")

TRIES = 3
FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 30.0
_LOOK_S = 0.02
_USUAL = {"https": "443", "http": "80", "": "623"}
_PORT = re.compile(r"(?:^[^:]*|\]):\d+$")
"""A port stands behind a name, an IPv4 address, or brackets; what ends an IPv6 address without them is none."""
_AGAIN = ("silent", "busy")


def bmc_at(address: str) -> str:
    """What an address names, however it is written: the BMC behind a host's usual ports is one, whichever of them is asked.

    Another port is another device, since several may stand behind one host. Names are not looked up.
    """
    scheme, _, rest = address.rpartition("://")
    rest = rest.rstrip("/").lower()
    host, _, port = rest.rpartition(":") if _PORT.search(rest) else (rest, "", "")
    usual = port in ("", _USUAL.get(scheme.lower(), _USUAL[""]))
    try:
        host = str(ipaddress.ip_address(host.strip("[]")))
    except ValueError:
        host = host.rstrip(".")
    return host if usual else f"{host} {port}"


@contextmanager
def turn(what: str, patience_s: float) -> Iterator[None]:
    """Be the only program of this machine that does ``what``, such as speaking to ``bmc_at(ADDRESS)``. ``PowerFault`` ``busy`` if it does not get there in time."""
    name = "\0ouvrage-power-" + hashlib.sha256(what.encode()).hexdigest()[:32]
    last = monotonic_us() + int(patience_s * 1_000_000)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as held:
        while True:
            try:
                held.bind(name)
                break
            except OSError:
                if monotonic_us() > last:
                    words = f"another program speaks to it, for more than {patience_s:g} s now"
                    raise PowerFault("busy", words) from None
                time.sleep(_LOOK_S)
        yield


def asked(
    ask: Callable[[], Told],
    *,
    tries: int = TRIES,
    first_s: float = FIRST_PAUSE_S,
    pause: Callable[[float], None] = time.sleep,
) -> Told:
    """The answer to a question that changes nothing, put again where there was none or it was busy.

    The pause doubles each time, or is as long as the device itself asks for; a longer one than ``LONGEST_PAUSE_S`` is
    not waited for. Raises the last ``PowerFault``.
    """
    wait_s = first_s
    for left in range(tries - 1, -1, -1):
        try:
            return ask()
        except PowerFault as fault:
            again_s = wait_s if fault.after_s is None else fault.after_s
            if fault.kind not in _AGAIN or not left or again_s > LONGEST_PAUSE_S:
                raise
            pause(again_s)
            wait_s *= 2
    raise AssertionError("a question is put at least once")
