"""Carries what a person types to the command's own terminal, and looks on for Ctrl-C and Ctrl-Z.

Used only when the command has a terminal of its own. Ctrl-Z needs help: the kernel does not stop a
session that has no job control of its own, so the whole job is stopped from here instead.
"""

from __future__ import annotations

import os
import select
import signal
import termios
import threading
from collections.abc import Callable

from ouvrage.meter import terminal
from ouvrage.meter.pump import write_all


class Keyboard(threading.Thread):
    """Forwards from ``screen`` to ``ours`` while the screen is active, until ``stop`` is readable.

    ``wake`` is a descriptor that becomes readable when the screen was entered or left.
    """

    def __init__(
        self,
        screen: terminal.Screen,
        ours: int,
        session: int,
        stop: int,
        interrupted: Callable[[], None],
    ) -> None:
        super().__init__(name="keyboard", daemon=True)
        self._screen = screen
        self._ours = ours
        self._session = session
        self._stop_fd = stop
        self._interrupted = interrupted
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)

    def woken(self) -> None:
        """The screen was entered or left: look again."""
        os.eventfd_write(self._wake, 1)

    def run(self) -> None:
        """Forward until told to stop or the terminal is gone."""
        while True:
            poller = select.poll()
            poller.register(self._stop_fd, select.POLLIN)
            poller.register(self._wake, select.POLLIN)
            if self._screen.active:
                poller.register(self._screen.fd, select.POLLIN)
            ready = [fd for fd, _ in poller.poll()]
            if self._stop_fd in ready:
                return
            if self._wake in ready:
                os.eventfd_read(self._wake)
            elif self._screen.fd in ready and not self._forward():
                return

    def _forward(self) -> bool:
        """Pass on what was typed; False when the terminal is gone."""
        try:
            typed = os.read(self._screen.fd, 1024)
            if not typed:
                return False
            while typed:
                before, stopper, typed = self._cut_at_stop(typed)
                if self._makes_interrupt(before):
                    self._interrupted()
                write_all(self._ours, before)
                if stopper:
                    os.kill(0, signal.SIGTSTP)
        except OSError:
            return False
        return True

    def _makes_interrupt(self, typed: bytes) -> bool:
        keys = terminal.control_bytes(self._ours, termios.VINTR, termios.VQUIT)
        return any(byte in typed for byte in (keys[i : i + 1] for i in range(len(keys))))

    def _cut_at_stop(self, typed: bytes) -> tuple[bytes, bytes, bytes]:
        """Split at a Ctrl-Z that concerns the command itself and not a job inside it."""
        key = terminal.control_bytes(self._ours, termios.VSUSP)
        if not key or key not in typed or self._holder() != self._session:
            return typed, b"", b""
        return typed.partition(key)

    def _holder(self) -> int:
        try:
            return os.tcgetpgrp(self._ours)
        except OSError:
            return -1
