"""Starts a command, stands beside it, and ends when it ends.

Decides what each signal means: what was sent to the meter alone is passed on; what the command got
as well, because both are in the terminal's group, is not; nothing that comes out of the command's
own tree is sent back into it. The main thread only waits for signals, so there is no handler and no
race; pumps and sampler are threads of their own. It does not decide what is written or printed.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NoReturn

from ouvrage.adapters import child_subreaper
from ouvrage.adapters.clock import monotonic_us
from ouvrage.meter import terminal
from ouvrage.meter.pump import Pump
from ouvrage.meter.wiring import Action, Wiring

if TYPE_CHECKING:
    from ouvrage.adapters.process_tree import ProcessTree
    from ouvrage.meter.keyboard import Keyboard

Mask = set[signal.Signals] | set[int]
Spawn = Callable[[Sequence[Action], Mask, bool], int]
"""Starts the command with these descriptors and this signal mask, in a session of its own or not."""

SI_KERNEL = 0x80
ENDINGS = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT})
_PATIENCE_S = 0.2
_OWN = frozenset(
    {
        signal.SIGKILL, signal.SIGSTOP, signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE,
        signal.SIGILL, signal.SIGTRAP, signal.SIGSYS, signal.SIGABRT, signal.SIGPIPE,
        signal.SIGXFSZ, signal.SIGXCPU, signal.SIGTTIN, signal.SIGPROF, signal.SIGVTALRM,
    }
)  # fmt: skip


class Signals:
    """Which signals are watched, and the mask that the command gets."""

    def __init__(self) -> None:
        if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self.watched = {
            number
            for number in signal.valid_signals()
            if number not in _OWN and signal.getsignal(number) is not signal.SIG_IGN
        }
        self.mask = signal.pthread_sigmask(signal.SIG_BLOCK, self.watched)


class Ending:
    """How the command ended: ``code`` is its exit code, or minus the signal that killed it."""

    def __init__(self, code: int, at_us: int, usage: resource.struct_rusage) -> None:
        self.exit_code = code if code >= 0 else None
        self.signal = -code if code < 0 else None
        self.at_us = at_us
        self.user_us = round(usage.ru_utime * 1_000_000)
        self.system_us = round(usage.ru_stime * 1_000_000)

    @property
    def killed_by_request(self) -> bool:
        """Whether it died of a signal that asks a program to end."""
        return self.signal in ENDINGS


class Supervisor:
    """One command under our eyes. ``stop`` becomes readable when it has ended."""

    def __init__(self, signals: Signals, wiring: Wiring) -> None:
        self._signals = signals
        self._wiring = wiring
        self._child = 0
        self._screen: terminal.Screen | None = None
        self._keyboard: Keyboard | None = None
        self._ended_us: int | None = None
        self._ending: Ending | None = None
        self.stop = os.eventfd(0, os.EFD_CLOEXEC)
        self.asked_to_end = False

    def start(self, spawn: Spawn) -> int:
        """Start the command; its process id. Raises ``OuvrageError`` where that fails."""
        wiring = self._wiring
        child_subreaper.become()
        self._child = spawn(wiring.actions, self._signals.mask, wiring.full >= 0)
        threading.Thread(target=self._watch_for_the_end, name="end", daemon=True).start()
        wiring.started()
        if wiring.full >= 0:
            self._screen = terminal.Screen(0)
            self._screen.enter()
            from ouvrage.meter.keyboard import Keyboard

            self._keyboard = Keyboard(
                self._screen, wiring.full, self._child, self.stop, self._note_ending
            )
            self._keyboard.start()
        return self._child

    @property
    def ended(self) -> bool:
        """Whether the command has ended."""
        return self._ended_us is not None

    def moment(self) -> int:
        """Now, or the command's end when it lies before: nothing of a run comes after it."""
        now, ended = monotonic_us(), self._ended_us
        return now if ended is None else min(now, ended)

    def _watch_for_the_end(self) -> None:
        """Note the moment of the command's end, also while the main thread is still preparing."""
        os.waitid(os.P_PID, self._child, os.WEXITED | os.WNOWAIT)
        self._ended_us = monotonic_us()
        os.kill(os.getpid(), signal.SIGCHLD)

    def _note_ending(self) -> None:
        self.asked_to_end = True

    def wait(self, tree: ProcessTree) -> int:
        """Serve signals until the command has ended; that moment. It is left unreaped."""
        self._look_at_children(tree)
        while self._ended_us is None:
            self._handle(signal.sigwaitinfo(self._signals.watched), tree)
        os.eventfd_write(self.stop, 1)
        return self._ended_us

    def drain(self, pumps: list[Pump]) -> bool:
        """Wait until the pumps have carried the rest; False when told to end before that."""
        while not all(pump.done for pump in pumps):
            if signal.sigwaitinfo(self._signals.watched).si_signo in ENDINGS:
                return False
        for pump in pumps:
            pump.join()
        return True

    def reap(self, tree: ProcessTree) -> Ending:
        """Wait for the command, at last, and learn how it ended."""
        if self._ending is None:
            status, usage = tree.reap(self._child)
            self._ending = Ending(os.waitstatus_to_exitcode(status), self._ended_us or 0, usage)
        return self._ending

    def release_terminal(self) -> None:
        """Put the person's terminal back."""
        if self._keyboard:
            self._keyboard.join(_PATIENCE_S)
        if self._screen:
            self._screen.leave()

    def _handle(self, info: signal.struct_siginfo, tree: ProcessTree) -> None:
        number = info.si_signo
        if number == signal.SIGCHLD:
            self._look_at_children(tree)
        elif number == signal.SIGWINCH:
            self._resize(info)
        elif number == signal.SIGTSTP:
            self._suspend(info, tree)
        elif number == signal.SIGCONT:
            self._resume()
        elif number != signal.SIGTTOU:
            from_inside = self._from_inside(info, tree)
            if number in ENDINGS and not from_inside:
                self.asked_to_end = True
            if not from_inside and (info.si_code != SI_KERNEL or self._screen):
                self._send(number)

    def _send(self, number: int) -> None:
        """To the command; to its whole group where it has a terminal and group of its own."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if self._screen:
                os.killpg(self._child, number)
            else:
                os.kill(self._child, number)

    def _from_inside(self, info: signal.struct_siginfo, tree: ProcessTree) -> bool:
        """Whether a process of the command's own tree sent this."""
        pid = info.si_pid if info.si_code <= 0 else 0
        while pid > 1 and pid != os.getpid():
            if pid == self._child:
                return True
            pid = tree.parent_of(pid)
        return False

    def _resize(self, info: signal.struct_siginfo) -> None:
        resized = self._wiring.resize()
        if not self._screen and (resized or info.si_code != SI_KERNEL):
            self._send(signal.SIGWINCH)

    def _suspend(self, info: signal.struct_siginfo, tree: ProcessTree) -> None:
        """Stop together with the command, and go on together."""
        if self._screen:
            self._send(signal.SIGSTOP)
            self._screen.leave()
        elif info.si_code != SI_KERNEL and not self._from_inside(info, tree):
            self._send(signal.SIGTSTP)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTSTP])
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTSTP])
        self._resume()

    def _resume(self) -> None:
        if self._screen and self._keyboard:
            self._screen.enter()
            self._keyboard.woken()
            self._wiring.resize()
        self._send(signal.SIGCONT)
        if self._screen:
            self._send(signal.SIGWINCH)

    def _look_at_children(self, tree: ProcessTree) -> None:
        """Notice the command's end; reap whatever else of its tree fell to us."""
        while True:
            try:
                found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if found is None:
                return
            if found.si_pid == self._child:
                return
            tree.reap(found.si_pid)


def die_like(number: int) -> NoReturn:
    """End as the command ended, so that whoever waits for us sees the same."""
    soft_and_hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, soft_and_hard[1]))
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])
    os.kill(os.getpid(), number)
    os._exit(128 + number)
