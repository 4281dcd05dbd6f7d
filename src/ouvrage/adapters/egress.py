"""A way out for one sandbox: a network of its own, joined to the machine's by a filter that counts.

Decides what may never be reached, whatever a job asks for: networks that are private (the owner's own
are), the link's and a cloud's metadata, this machine itself, mail servers. What a job names is allowed
within that, by address: names are looked up once, at the start, and told to the job, so that it and
the filter mean the same machines. Bytes are counted where they are let through. Made with ``ip`` and
``nft``; a number that this process holds, and the kernel takes back, keeps two from sharing one.
"""

from __future__ import annotations

import contextlib
import fcntl
import ipaddress
import json
import os
import socket
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ouvrage.base.errors import OuvrageError

_NUMBERS = Path("/run/lock/ouvrage-net")
_MOST = 8192
_BASE = int(ipaddress.IPv4Address("198.18.0.0"))
"""RFC 2544's range for measurements, which the Internet does not route: four addresses each."""

DENIED = (
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
    "192.0.0.0/24", "192.168.0.0/16", "198.18.0.0/15", "224.0.0.0/3",
)  # fmt: skip
"""Never reached: the special-purpose registry of RFC 6890, without the ranges for examples."""

MAIL = (25, 465, 587)
_RESOLVERS = ("/etc/resolv.conf", "/run/systemd/resolve/resolv.conf")
_EVERYWHERE = "0.0.0.0/0"

_RULES = """
table inet {name} {{
  counter sent {{ }}
  counter received {{ }}
  set denied {{
    type ipv4_addr
    flags interval
    auto-merge
    elements = {{ {denied} }}
  }}
  chain leaving {{
    {resolvers}
    ip daddr @denied counter drop
    meta l4proto tcp th dport {{ {mail} }} counter drop
    {allowed}
    counter drop
  }}
  chain arriving {{
    ct state established,related counter name received accept
    counter drop
  }}
  chain forward {{
    type filter hook forward priority -5
    policy accept
    iifname "{link}" jump leaving
    oifname "{link}" jump arriving
  }}
  chain input {{
    type filter hook input priority -5
    policy accept
    {asked_here}
    iifname "{link}" counter drop
  }}
  chain outward {{
    type nat hook postrouting priority 100
    policy accept
    iifname "{link}" masquerade
  }}
}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class WayOut:
    """A prepared network: ``space`` is its namespace's descriptor, ``hosts`` names and addresses.

    ``resolver`` is a ``resolv.conf``, empty where the names a job may use are all in ``hosts``.
    """

    number: int
    space: int
    lock: int
    hosts: tuple[tuple[str, str], ...]
    resolver: str

    @property
    def name(self) -> str:
        """Of its namespace and its table."""
        return _name(self.number)


def missing() -> list[str]:
    """What this machine lacks to make one."""
    places = {"nft": "nftables", "ip": "iproute2"}
    return [package for tool, package in places.items() if _tool(tool) is None]


def open_way(egress: Sequence[str], deny: Sequence[str] = ()) -> WayOut:
    """Make a network that reaches these (nothing named: all that is not denied).

    Raises ``OuvrageError`` ``egress/...``; nothing is left then.
    """
    number, lock = _number()
    try:
        _clear(number)
        allowed, hosts = _allowed(egress)
        _links(number)
        resolvers = [] if egress else _resolvers()
        _filter(number, [*DENIED, *deny], allowed, resolvers)
        Path("/proc/sys/net/ipv4/ip_forward").write_text("1", "ascii")
        space = os.open(f"/run/netns/{_name(number)}", os.O_RDONLY | os.O_CLOEXEC)
    except BaseException:
        _clear(number)
        os.close(lock)
        raise
    lines = "".join(f"nameserver {each}\n" for each in resolvers)
    return WayOut(number=number, space=space, lock=lock, hosts=hosts, resolver=lines)


def counted(number: int) -> tuple[int | None, int | None]:
    """Bytes sent and received so far through the filter; None where they cannot be read."""
    done = _run([_tool("nft") or "nft", "-j", "list", "counters", "table", "inet", _name(number)])
    if done.returncode:
        return None, None
    told: dict[str, int] = {}
    for each in json.loads(done.stdout)["nftables"]:
        if "counter" in each:
            told[each["counter"]["name"]] = each["counter"]["bytes"]
    return told.get("sent"), told.get("received")


def close_way(way: WayOut) -> bool:
    """Take it away; whether all of it is gone."""
    os.close(way.space)
    gone = _clear(way.number)
    os.close(way.lock)
    return gone


def sweep() -> list[int]:
    """Take away what a process left that was killed; the numbers of these."""
    found: list[int] = []
    for number in _standing():
        with contextlib.suppress(BlockingIOError):
            lock = _locked(number)
            _clear(number)
            os.close(lock)
            found.append(number)
    return found


def _standing() -> Iterator[int]:
    with contextlib.suppress(FileNotFoundError):
        for entry in os.scandir("/run/netns"):
            number = entry.name.removeprefix("ouvrage-")
            if entry.name.startswith("ouvrage-") and number.isdecimal():
                yield int(number)


def _name(number: int) -> str:
    return f"ouvrage-{number}"


def _link(number: int) -> str:
    return f"ouv{number}"


def _number() -> tuple[int, int]:
    for number in range(_MOST):
        try:
            return number, _locked(number)
        except BlockingIOError:
            continue
    raise OuvrageError("egress/none-left", f"{_MOST} networks are in use already")


def _locked(number: int) -> int:
    _NUMBERS.mkdir(mode=0o700, parents=True, exist_ok=True)
    fd = os.open(_NUMBERS / str(number), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        raise
    return fd


def _links(number: int) -> None:
    name, link = _name(number), _link(number)
    ours = ipaddress.IPv4Address(_BASE + 4 * number + 1)
    outside = (
        f"link add {link} type veth peer name eth0 netns {name}",
        f"addr add {ours}/30 dev {link}",
        f"link set {link} up",
    )
    inside = (
        "link set lo up",
        f"addr add {ours + 1}/30 dev eth0",
        "link set eth0 up",
        f"route add default via {ours}",
    )
    ip = _tool("ip") or "ip"
    _must([ip, "netns", "add", name])
    _must([ip, "-batch", "-"], "\n".join(outside))
    _must([ip, "-n", name, "-batch", "-"], "\n".join(inside))


def _filter(
    number: int, denied: Sequence[str], allowed: Sequence[str], resolvers: Sequence[str]
) -> None:
    to = f"ip daddr {{ {', '.join(resolvers)} }}"
    asked = [f"{to} {kind} dport 53 counter name sent accept" for kind in ("udp", "tcp")]
    asked = asked if resolvers else []
    rules = _RULES.format(
        name=_name(number),
        link=_link(number),
        denied=", ".join(denied),
        mail=", ".join(map(str, MAIL)),
        allowed="\n    ".join(allowed),
        resolvers="\n    ".join(asked),
        asked_here="\n    ".join(f'iifname "{_link(number)}" {rule}' for rule in asked),
    )
    _must([_tool("nft") or "nft", "-f", "-"], rules)


def _allowed(egress: Sequence[str]) -> tuple[list[str], tuple[tuple[str, str], ...]]:
    """The rules that let through what a job names, and the addresses of the names in it."""
    rules: list[str] = []
    hosts: list[tuple[str, str]] = []
    for each in egress or (_EVERYWHERE,):
        where, port = _parts(each)
        if _is_network(where):
            addresses = [str(ipaddress.IPv4Network(where, strict=False))]
        else:
            addresses = _looked_up(where)
            hosts += [(where, address) for address in addresses]
        to = f"ip daddr {{ {', '.join(addresses)} }}"
        kinds = [f"meta l4proto {{ tcp, udp }} th dport {port}"] if port else [""]
        rules += [f"{to} {kind} counter name sent accept" for kind in kinds]
    return rules, tuple(hosts)


def _parts(destination: str) -> tuple[str, int | None]:
    where, colon, port = destination.rpartition(":")
    if not colon:
        return destination, None
    if not port.isdecimal() or not 0 < int(port) < 65536:
        raise OuvrageError("egress/destination", f"{destination!r} has no port after its colon")
    return where, int(port)


def _is_network(text: str) -> bool:
    try:
        ipaddress.IPv4Network(_parts(text)[0], strict=False)
    except ValueError:
        return False
    return True


def _looked_up(host: str) -> list[str]:
    try:
        told = socket.getaddrinfo(host, None, socket.AF_INET, socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise OuvrageError(
            "egress/unknown-host",
            f"{host} has no address: {error}",
            hint="name it by its address",
        ) from error
    return sorted({str(each[4][0]) for each in told})


def _resolvers() -> list[str]:
    """The machine's resolvers that another host can ask."""
    for path in _RESOLVERS:
        with contextlib.suppress(OSError):
            words = [line.split() for line in Path(path).read_text("ascii", "replace").splitlines()]
            told = [w[1] for w in words if w[:1] == ["nameserver"] and len(w) > 1]
            usable = [each for each in told if "." in each and not each.startswith("127.")]
            if usable:
                return usable
    return []


def _clear(number: int) -> bool:
    """Remove what there is of it: deleting the namespace takes both ends of the link along."""
    name, ip = _name(number), _tool("ip") or "ip"
    if os.path.exists(f"/run/netns/{name}"):
        _run([ip, "netns", "delete", name])
    if os.path.exists(f"/sys/class/net/{_link(number)}"):
        _run([ip, "link", "delete", _link(number)])
    _run([_tool("nft") or "nft", "delete", "table", "inet", name])
    return not os.path.exists(f"/run/netns/{name}")


def _tool(name: str) -> str | None:
    places = (f"{directory}/{name}" for directory in ("/usr/sbin", "/sbin", "/usr/bin", "/bin"))
    return next((place for place in places if os.access(place, os.X_OK)), None)


def _run(words: Sequence[str], text: str = "") -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(words, input=text, capture_output=True, text=True, check=False)
    except OSError as error:
        raise OuvrageError(
            "egress/no-tool",
            f"{words[0]}: {error.strerror}",
            hint="apt install nftables iproute2",
        ) from error


def _must(words: Sequence[str], text: str = "") -> None:
    done = _run(words, text)
    if done.returncode:
        raise OuvrageError(
            "egress/not-made",
            f"no network of its own for the job: {done.stderr.strip()[:300]}",
            hint="the agent must be root, with nf_tables and veth in the kernel",
        )
