"""The clock of the inbox: what is sent while others are taken in is not yet to come."""

from __future__ import annotations

import json
import socket

from ouvrage.meter.inbox import Inbox
from ouvrage.meter.record import Record
from ouvrage.meter.spool_file import SpoolFile


def test_the_clock_is_asked_for_each_message() -> None:
    inbox, record, clock = (
        Inbox(),
        Record(SpoolFile(None)),
        iter(range(1_000_000, 9_000_000, 200_000)),
    )
    inbox.open()
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.connect(inbox.address)
            for at in (1_000_000, 1_200_000, 1_400_000):
                units = [["step", 1, at * 1000]]
                sender.send(json.dumps({"v": 1, "pid": 1, "tid": 1, "units": units}).encode())
            inbox.receive(record, 0, lambda: next(clock))
    finally:
        inbox.close()
    assert inbox.refused == 0
