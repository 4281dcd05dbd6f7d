"""A machine on which no sandbox stands says so at once, in the words of what refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.support.orders import missing

FORBIDDEN = """
import ctypes, json, struct
from dataclasses import asdict
libc = ctypes.CDLL(None, use_errno=True)
# As systemd's ProtectHostname=: sethostname (170 on x86-64) is refused to this process and all below it.
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, 170), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7FFF0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
program = struct.pack("HxxxxxxQ", len(steps), ctypes.addressof(code))
assert libc.prctl(22, 2, program, 0, 0) == 0
from ouvrage.agent.isolation import examine
print(json.dumps([asdict(each) for each in examine()]))
"""


def test_a_service_that_forbids_a_name_of_its_own_is_told():
    why = missing() or ("" if os.uname().machine == "x86_64" else "another table of system calls")
    if why:
        pytest.skip(why)
    done = subprocess.run(
        [sys.executable, "-c", FORBIDDEN], capture_output=True, text=True, timeout=60, check=True
    )
    (failed,) = [each for each in json.loads(done.stdout) if not each["holds"]]
    assert failed["name"] == "starts"
    assert "hostname" in failed["found"]
