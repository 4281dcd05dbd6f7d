"""The units under a real systemd, and every escape on control groups v2: Debian 12 in a machine without KVM.

The tests go from an empty machine to a tenant's job, in this order; each leaves the machine to the next one as it stands.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from .image import lacking, made
from .machine import Machine, started

pytestmark = pytest.mark.soak

UNITS = "/srv/ouvrage/deploy/systemd"
ADDRESS = "http://127.0.0.1:8680"
OWNER = f"export PATH=/opt/ouvrage/bin:$PATH OUVRAGE_URL={ADDRESS} OUVRAGE_TOKEN_FILE=/var/lib/ouvrage/owner.token; "
TENANT = "export PATH=/opt/ouvrage/bin:$PATH OUVRAGE_HOME=/srv/ann; "
TRIAL_S = 580
"""For all that is tried out of a sandbox: seconds on a machine, minutes here."""


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    why = lacking()
    if why:
        pytest.skip(why)
    with started(made(), tmp_path_factory.mktemp("vm")) as stands:
        yield stands


def main_pid(machine: Machine, unit: str) -> str:
    return machine.good(f"systemctl show --property=MainPID --value {unit}").strip()


def test_the_machine_is_what_an_owner_has(machine: Machine):
    assert machine.good("cat /proc/1/comm").strip() == "systemd"
    assert machine.good("stat -fc %T /sys/fs/cgroup").strip() == "cgroup2fs"


def test_nothing_gets_out_on_v2(machine: Machine):
    ran = machine.run("/opt/ouvrage/bin/ouvrage doctor --isolation --plain", seconds=TRIAL_S)
    print(ran.said)
    assert ran.code == 0, ran.said


def test_the_server_s_unit_stays_up(machine: Machine):
    machine.good(
        f"install -m 644 {UNITS}/*.service /etc/systemd/system/ && systemctl daemon-reload"
    )
    machine.good("systemctl enable --quiet --now ouvrage-server")
    machine.until("(echo > /dev/tcp/127.0.0.1/8680)")
    print(machine.good("systemctl status --no-pager ouvrage-server"))
    assert "0 nodes" in machine.until(f"{OWNER} ouvrage node list")


@pytest.mark.parametrize(("unit", "most"), [("ouvrage-server", 2.0), ("ouvrage-watch", 5.0)])
def test_what_systemd_says_of_a_unit_s_exposure(machine: Machine, unit: str, most: float):
    told = machine.good(f"systemd-analyze security --no-pager {unit} | tail -1")
    exposure = re.search(r": ([0-9.]+) ", told)
    assert exposure, told
    assert float(exposure[1]) <= most


def test_the_agent_s_unit_joins_and_proves_its_sandbox(machine: Machine):
    machine.good(
        f"{OWNER} mkdir -p /etc/ouvrage /etc/systemd/system/ouvrage-agent.service.d;"
        " (umask 077; ouvrage node enrol --json | python3 -c 'import json,sys; print(json.load(sys.stdin)[\"secret\"])' > /etc/ouvrage/enrol);"
        " printf '[Service]\\nEnvironment=OUVRAGE_SERVER=http://127.0.0.1:8680\\n' > /etc/systemd/system/ouvrage-agent.service.d/server.conf;"
        " systemctl daemon-reload; systemctl enable --quiet --now ouvrage-agent"
    )
    machine.until("test -e /var/lib/ouvrage-agent/isolation.json", seconds=TRIAL_S)
    kept = json.loads(machine.good("cat /var/lib/ouvrage-agent/isolation.json"))
    assert [each for each in kept["findings"]["sandbox"] if not each["holds"]] == []
    machine.until(f"{OWNER} ouvrage node list | grep '1 here now'")


def test_a_tenant_s_job_in_the_sandbox_under_the_units(machine: Machine):
    machine.good(
        f"{OWNER} ouvrage offer create standard --cpus 1 --memory 256MiB --disk 64MiB --price 0.30/h"
    )
    tenant = json.loads(machine.good(f"{OWNER} ouvrage tenant create acme --admin ann --json"))
    machine.good(f"{OWNER} ouvrage payment add acme 25 --reference T-1")
    machine.good(
        f"{TENANT} ouvrage login {ADDRESS} --login ann@acme --password-stdin",
        stdin=f"{tenant['password']}\n",
    )
    said = machine.good(
        f"{TENANT} ouvrage job submit --offer standard --follow -- sh -c 'echo from inside as $(id -u); uname -n; grep Seccomp: /proc/self/status'",
        seconds=300,
    )  # fmt: skip
    print(said)
    assert re.search("from inside as 1000\njob\nSeccomp:\t2", said), said


def test_killed_they_are_started_again(machine: Machine):
    for unit in ("ouvrage-server", "ouvrage-agent"):
        was = main_pid(machine, unit)
        machine.good(f"systemctl kill --kill-whom=main --signal=KILL {unit}")
        machine.until(
            f"now=$(systemctl show --property=MainPID --value {unit}); [ $now != 0 ] && [ $now != {was} ]"
        )
    machine.until(f"{OWNER} ouvrage node list | grep '1 here now'")


def test_stopping_the_agent_ends_nobody_s_work(machine: Machine):
    job = json.loads(
        machine.good(
            f"{OWNER} ouvrage job submit --offer standard --json -- sh -c 'sleep 45; echo went on'"
        )
    )["id"]
    machine.until(f"{OWNER} ouvrage job show {job} --json | grep -q running")
    machine.good("systemctl stop ouvrage-agent", seconds=120)
    assert machine.good("pgrep -fc '^sleep 45$'").strip() == "1"
    assert machine.good("ls -d /sys/fs/cgroup/ouvrage/*-*").strip()
    machine.good("systemctl start ouvrage-agent", seconds=120)
    machine.until(f"{OWNER} ouvrage job logs {job} | grep -q 'went on'")
    machine.until("! ls -d /sys/fs/cgroup/ouvrage/*-*")


def test_the_tests_of_the_sandbox_on_v2(machine: Machine):
    machine.good("systemctl stop ouvrage-agent", seconds=120)
    ran = machine.run(
        "cd /srv/ouvrage && PYTHONPATH=/opt/tests timeout 1500 /opt/ouvrage/bin/python -m pytest -q -p no:cacheprovider"
        " tests/isolation tests/agent/test_supervisor.py", seconds=1600,
    )  # fmt: skip
    print(ran.said)
    assert ran.code == 0, ran.said[-6000:]
