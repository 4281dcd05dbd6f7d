"""``unit``, ``span`` and ``watch``: a program under ``ouvrage run`` says what it is doing.

Decides what is summed here and when it is sent: sums of a thread's spans go with each unit and
otherwise at most twice a second, so that a loop of a million steps costs two messages a second.
Spans nest; each gets its own time without that of the spans inside it. Nothing is ever raised on
our account and nothing waits: what cannot be sent now is sent with the next message. Where nobody
listens every call returns at once. Safe in threads (each has its own sums) and in forked children
(which begin with none).
"""

from __future__ import annotations

import os
import sys
from operator import index
from time import monotonic_ns, thread_time_ns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import TracebackType
    from typing import Any, SupportsIndex, TypeVar

    T = TypeVar("T")

_INTERVAL_NS = 500_000_000
_BURST_NS = 50_000_000
_MOST_UNITS = 160
_MOST_NAMES = 48
_MOST_COUNT = 10**12
_MOST_SPANS = 48
_MOST_THREADS = 64
_NAME_LENGTH = 64
_CUT = slice(None, _NAME_LENGTH)
_LAST_WAIT_S = 0.5


class _Thread:
    """What one thread has not sent yet. ``mark`` is the moment up to which its spans are summed."""

    __slots__ = ("cpu", "ident", "mark", "sent", "since", "stack", "sums", "tid", "told", "units")

    def __init__(self, ident: int, tid: int) -> None:
        now = monotonic_ns()
        self.ident = ident
        self.tid = tid
        self.stack: list[str] = []
        self.sums: dict[str, list[int]] = {}
        self.units: list[tuple[str, int, int]] = []
        self.mark = self.since = now
        self.sent = self.told = 0
        self.cpu = thread_time_ns()

    def settle(self, now: int) -> None:
        """Give the time since ``mark`` to the innermost open span."""
        if self.stack:
            self.sums_of(self.stack[-1])[1] += now - self.mark
        elif not self.sums:
            self.since = now if not self.units else self.since
        self.mark = now

    def sums_of(self, name: str) -> list[int]:
        """Count and nanoseconds of one name; names beyond a bound are summed together."""
        found = self.sums.get(name)
        if found is None:
            if len(self.sums) >= _MOST_SPANS:
                name = "other"
            found = self.sums.setdefault(name, [0, 0])
        return found


class _Link:
    """The socket to the meter and every thread's sums."""

    def __init__(self, address: str) -> None:
        import json
        import socket
        import threading

        self._threading = threading
        self.pid = os.getpid()
        self._encode = json.dumps
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.connect(address)
        self._local: Any = threading.local()
        self._threads: list[_Thread] = []
        self._dropping = threading.Lock()

    def thread(self) -> _Thread:
        """The calling thread's sums."""
        try:
            return self._local.sums
        except AttributeError:
            threading = self._threading
            sums = self._local.sums = _Thread(threading.get_ident(), threading.get_native_id())
            if len(self._threads) >= _MOST_THREADS:
                self._drop_ended()
            self._threads.append(sums)
            return sums

    def _drop_ended(self) -> None:
        """Send what ended threads have left; one thread at a time does that, the others go on."""
        if not self._dropping.acquire(blocking=False):
            return
        try:
            running = sys._current_frames().keys()
            for sums in [sums for sums in self._threads if sums.ident not in running]:
                self.send(sums, monotonic_ns(), own=False)
                if not sums.units and not sums.sums:
                    self._threads.remove(sums)
        finally:
            self._dropping.release()

    def send(self, sums: _Thread, now: int, *, own: bool = True) -> None:
        """Send what there is; what the socket does not take stays for the next time."""
        cpu = thread_time_ns() if own else sums.cpu
        message: dict[str, Any] = {
            "v": 1,
            "pid": self.pid,
            "tid": sums.tid,
            "units": sums.units,
            "from": sums.since,
            "to": now,
            "cpu": max(0, cpu - sums.cpu),
            "spans": [[name, count, ns] for name, (count, ns) in list(sums.sums.items())],
        }
        sums.sent = now
        try:
            self._socket.send(self._encode(message).encode())
        except (BlockingIOError, TimeoutError):
            return
        except OSError:
            _stop_listening()
            return
        sums.units = []
        sums.sums = {}
        sums.since = now
        sums.cpu = cpu

    def send_all(self) -> None:
        """Send what every thread has left, at the end of the program: nothing comes after it.

        A meter that is behind is waited for, but not for long.
        """
        now = monotonic_ns()
        last = now + int(_LAST_WAIT_S * 1e9)
        for sums in list(self._threads):
            self._socket.settimeout(max(0, last - monotonic_ns()) / 1e9)
            if sums.units or sums.sums or sums.stack:
                sums.settle(now)
                self.send(sums, now, own=sums.ident == self._threading.get_ident())

    def after_fork(self) -> None:
        """In a forked child: the parent's sums are the parent's."""
        self.pid = os.getpid()
        self._local = self._threading.local()
        self._threads = []
        self._dropping = self._threading.Lock()
        util = sys.modules.get("multiprocessing.util")
        if util is not None:
            # Its children leave by os._exit, past atexit, but run its own finalizers.
            util.register_after_fork(self, lambda _: util.Finalize(None, _at_exit, exitpriority=0))


_link: _Link | None = None


def _stop_listening() -> None:
    global _link
    _link = None


def _connect() -> None:
    global _link
    address = os.environ.get("OUVRAGE_SOCKET")
    if not address:
        return
    try:
        _link = _Link(address)
    except (OSError, ValueError, ImportError):
        return
    import atexit

    atexit.register(_at_exit)
    os.register_at_fork(after_in_child=_after_fork)


def _at_exit() -> None:
    if _link is not None:
        try:
            _link.send_all()
        except Exception:  # noqa: BLE001 -- other threads may still be at their sums
            return


def _after_fork() -> None:
    if _link is not None:
        _link.after_fork()


def unit(name: object = "unit", count: SupportsIndex = 1) -> None:
    """One unit of work (or ``count`` of them) is finished now; what is no text or count is let be."""
    link = _link
    if link is None:
        return
    try:
        count = index(count)
    except Exception:  # noqa: BLE001 -- an object of the program's may raise anything
        return
    if not 1 <= count <= _MOST_COUNT or not isinstance(name, str):
        return
    sums = link.thread()
    now = monotonic_ns()
    sums.settle(now)
    if len(sums.units) < _MOST_UNITS:
        sums.units.append((_short(name), count, now))
    else:
        _add_to_last(sums.units, _short(name), count, now)
    if now - sums.told >= _BURST_NS:
        sums.told = now
        link.send(sums, now)


def _add_to_last(units: list[tuple[str, int, int]], name: str, count: int, now: int) -> None:
    """Units that come too fast to be told one by one are told together: all count."""
    for at in range(len(units) - 1, -1, -1):
        if units[at][0] == name:
            units[at] = (name, min(units[at][1] + count, _MOST_COUNT), now)
            return
    if len(units) < _MOST_UNITS + _MOST_NAMES:
        units.append((name, count, now))


def _short(name: str) -> str:
    """The name within its bounds, so that a message is never longer than the meter takes."""
    text = str.__getitem__(name, _CUT)
    if not (text.isascii() and text.isprintable()):
        text = "".join([c if c.isprintable() else "?" for c in text])
        text = text.encode()[:_NAME_LENGTH].decode("utf-8", "ignore")
    return text or "unit"


class _Span:
    """A span of one name. One object serves every entry, nested or in other threads."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        _enter(self._name)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _leave(self._name, 1)


def _enter(name: str) -> None:
    link = _link
    if link is not None:
        sums = link.thread()
        sums.settle(monotonic_ns())
        sums.stack.append(name)


def _leave(name: str, count: int) -> None:
    """End the innermost span; one entered before a fork is not open in the child."""
    link = _link
    if link is None:
        return
    sums = link.thread()
    if not sums.stack or sums.stack[-1] != name:
        return
    now = monotonic_ns()
    sums.settle(now)
    sums.stack.pop()
    sums.sums_of(name)[0] += count
    if now - sums.sent >= _INTERVAL_NS:
        link.send(sums, now)


_nobody = _Span("")


def span(name: object) -> _Span:
    """``with ouvrage.span("checkpoint"): ...`` counts the time inside under that name."""
    if _link is None:
        return _nobody
    return _Span(_short(name) if isinstance(name, str) else "span")


class _Watch:
    """An iterable whose every ``next`` is a span; all else is the iterable's own."""

    _iterable: Any
    _name: str

    def __init__(self, iterable: Any, name: str) -> None:
        object.__setattr__(self, "_iterable", iterable)
        object.__setattr__(self, "_name", name)

    def __iter__(self) -> Iterator[Any]:
        name = self._name
        _enter(name)
        try:
            source = iter(self._iterable)
        finally:
            _leave(name, 0)
        while True:
            _enter(name)
            items = 0
            try:
                item = next(source)
                items = 1
            except StopIteration:
                return
            finally:
                _leave(name, items)
            yield item

    def __bool__(self) -> bool:
        return bool(self._iterable)

    def __getitem__(self, key: Any) -> Any:
        return self._iterable[key]

    def __reversed__(self) -> Iterator[Any]:
        return reversed(self._iterable)

    def __getattr__(self, name: str) -> Any:
        if name == "_iterable":  # a copy that is still being made
            raise AttributeError(name)
        return getattr(self._iterable, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._iterable, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._iterable, name)


class _SizedWatch(_Watch):
    """The same for an iterable with a length."""

    def __len__(self) -> int:
        return len(self._iterable)


class _IteratorWatch(_Watch):
    """The same for an iterator, which can also be asked for a single item."""

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        _enter(self._name)
        items = 0
        try:
            item = next(self._iterable)
            items = 1
        finally:
            _leave(self._name, items)
        return item


def watch(iterable: Iterable[T], name: object = "data") -> Iterable[T]:
    """The same iterable, with the time that a loop waits for its next item counted as ``name``.

    Length and attributes stay the iterable's own. Where nobody listens it *is* the iterable.
    """
    if _link is None or not (hasattr(iterable, "__iter__") or hasattr(iterable, "__getitem__")):
        return iterable
    label = _short(name) if isinstance(name, str) else "data"
    if hasattr(iterable, "__next__"):
        return _IteratorWatch(iterable, label)
    return (_SizedWatch if hasattr(iterable, "__len__") else _Watch)(iterable, label)


_connect()
