"""What a hostile tenant tries from inside a sandbox, as programs, and what each must come to.

Decides the list. Every try is a function's body that runs in the sandbox and says what it got, in
words; ``held`` is what it says where the sandbox holds. The same list is run by ``ouvrage doctor``
on an owner's machine and by the tests on ours, so nobody has to believe us.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Try:
    """``body`` appends what it got to ``got``; ``told`` holds what the outside gave it to look for.

    ``hint`` says what to do where it does not hold.
    """

    name: str
    what: str
    body: str
    hint: str


KERNEL = "update bubblewrap and the kernel; refuse strangers' work until this holds"
MOUNTS = "report this: the view of the file system is Ouvrage's own doing"

TRIES: tuple[Try, ...] = (
    Try(
        name="host-files",
        what="reads files of the host",
        body="""
for path in ("/etc/shadow", "/etc/gshadow", "/root", "/home", "/var/log", "/boot", "/srv", "/mnt",
             "/opt", "/proc/1/root/etc/shadow", "/proc/self/root/root", *told["host_paths"]):
    try:
        seen = os.listdir(path) if os.path.isdir(path) else open(path, "rb").read(100)
    except OSError:
        continue
    if seen:
        got.append(path)
""",
        hint=MOUNTS,
    ),
    Try(
        name="host-writes",
        what="writes outside its own space",
        body="""
for place in ("/", "/usr", "/usr/bin", "/etc", "/dev", "/run", "/var", "/sys", "/proc", "/lib"):
    try:
        with open(f"{place}/ouvrage-was-here", "w"):
            got.append(place)
    except OSError:
        pass
for path in ("/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/proc/sys/vm/drop_caches",
             "/sys/kernel/uevent_helper", "/sys/devices/system/cpu/cpu1/online"):
    try:
        with open(path, "w") as file:
            file.write("1")
        got.append(path)
    except OSError:
        pass
""",
        hint=MOUNTS,
    ),
    Try(
        name="other-tenants",
        what="finds another tenant's files, processes or secrets",
        body="""
for directory, names, files in os.walk("/", onerror=None):
    names[:] = [n for n in names if os.path.join(directory, n) not in ("/proc", "/sys", "/usr")]
    got += [os.path.join(directory, f) for f in files if told["neighbour"] in f]
for pid in os.listdir("/proc"):
    for part in ("cmdline", "environ"):
        try:
            if told["neighbour"].encode() in open(f"/proc/{pid}/{part}", "rb").read():
                got.append(f"process {pid}")
        except OSError:
            pass
""",
        hint=MOUNTS,
    ),
    Try(
        name="processes",
        what="sees or signals processes of the machine",
        body="""
own = {os.getpid(), os.getppid()}
seen = [int(n) for n in os.listdir("/proc") if n.isdecimal()]
strange = [pid for pid in seen if pid > 2 and pid not in own and not mine(pid)]
got += [f"process {pid}" for pid in strange]
for pid in told["host_pids"]:
    try:
        os.kill(pid, 0)
        if pid not in seen:
            got.append(f"signal to {pid}")
    except OSError:
        pass
""",
        hint=KERNEL,
    ),
    Try(
        name="devices",
        what="opens or makes raw devices",
        body="""
import stat
for name in sorted(set(os.listdir("/dev")) | {"mem", "kmsg", "kvm", "fuse", "vsock", "loop0",
             "loop-control", "sda", "vda", "nvme0n1", "nvidia0", "nvidiactl"}):
    path = f"/dev/{name}"
    if name in ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm", "fd",
                "stdin", "stdout", "stderr", "core", "mqueue"):
        continue
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
        got.append(path)
    except OSError:
        pass
for major, minor in ((8, 0), (254, 0), (259, 0), (1, 1), (7, 0), (195, 0)):
    for kind in (stat.S_IFBLK, stat.S_IFCHR):
        try:
            os.mknod(f"/tmp/node-{major}-{minor}", 0o600 | kind, os.makedev(major, minor))
            got.append(f"made {major}:{minor}")
        except OSError:
            pass
""",
        hint="only granted /dev/nvidia* nodes may be seen: " + MOUNTS,
    ),
    Try(
        name="metadata",
        what="reaches a cloud's metadata service",
        body="""
for family, address in ((socket.AF_INET, ("169.254.169.254", 80)),
                        (socket.AF_INET6, ("fd00:ec2::254", 80)),
                        (socket.AF_INET, ("100.100.100.200", 80))):
    with socket.socket(family) as link:
        link.settimeout(0.5)
        try:
            link.connect(address)
            got.append(address[0])
        except OSError as error:
            if isinstance(error, TimeoutError):
                got.append(f"{address[0]} has a route")
""",
        hint=KERNEL,
    ),
    Try(
        name="loopback",
        what="reaches services on the host's loopback or its sockets",
        body="""
for port in told["ports"]:
    for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        with socket.socket(family) as link:
            link.settimeout(0.5)
            try:
                link.connect((host, port))
                got.append(f"{host}:{port}")
            except OSError:
                pass
for path in ("\\0" + told["abstract"], "/run/dbus/system_bus_socket", "/run/docker.sock",
             "/var/run/docker.sock", "/run/podman/podman.sock", "/run/systemd/private"):
    with socket.socket(socket.AF_UNIX) as link:
        try:
            link.connect(path)
            got.append(path.strip("\\0"))
        except OSError:
            pass
""",
        hint=KERNEL,
    ),
    Try(
        name="sockets",
        what="opens sockets that no network namespace holds",
        body="""
for family, kind, number in ((40, 1, 0), (38, 5, 0), (17, 3, 3), (2, 3, 1), (2, 3, 255),
                             (16, 3, 15), (16, 3, 9), (31, 3, 0), (21, 5, 0), (29, 3, 1)):
    try:
        socket.socket(family, kind, number).close()
        got.append(f"family {family}, protocol {number}")
    except OSError:
        pass
""",
        hint="report this: the filter of system calls is Ouvrage's own",
    ),
    Try(
        name="privileges",
        what="has or gains privileges",
        body="""
for pid in ("self", "1"):
    told_of = dict(line.split(":", 1) for line in open(f"/proc/{pid}/status") if ":" in line)
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        if int(told_of[name], 16):
            got.append(f"{name} of {pid}")
    for name, wanted in (("NoNewPrivs", "1"), ("Seccomp", "2")):
        if told_of[name].strip() != wanted:
            got.append(f"{name} of {pid} is {told_of[name].strip()}")
for ask in (os.setuid, os.setgid):
    for number in (0, 65534):
        try:
            ask(number)
            got.append(f"{ask.__name__} {number}")
        except OSError:
            pass
for words in (["mount", "-t", "tmpfs", "none", "/tmp"], ["su", "-c", "true"], ["sudo", "-n", "true"]):
    try:
        if subprocess.run(words, capture_output=True, stdin=subprocess.DEVNULL).returncode == 0:
            got.append(" ".join(words))
    except OSError:
        pass
""",
        hint=KERNEL,
    ),
    Try(
        name="kernel",
        what="asks the kernel for what only an administrator may",
        body="""
libc = ctypes.CDLL(None, use_errno=True)
machine = {"x86_64": 0, "aarch64": 1}[os.uname().machine]
for name, numbers in told["denied"].items():
    number = numbers[machine]
    if number is None:
        continue
    ctypes.set_errno(0)
    if libc.syscall(number, 0, 0, 0, 0, 0, 0) >= 0 or ctypes.get_errno() not in (1, 38):
        got.append(f"{name} ({ctypes.get_errno()})")
for flag in (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000):
    pid = libc.syscall((56, 220)[machine], flag | 17, 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    if pid > 0:
        os.waitpid(pid, 0)
        got.append(f"clone {flag:#x}")
""",
        hint="report this: the filter of system calls is Ouvrage's own",
    ),
    Try(
        name="descriptors",
        what="finds descriptors that were left open",
        body="""
got += [f"{n} -> {os.readlink(f'/proc/{os.getpid()}/fd/{n}')}" for n in told["open"]]
""",
        hint=MOUNTS,
    ),
    Try(
        name="identity",
        what="learns the machine's name or the agent's environment",
        body="""
if os.uname().nodename == told["host_name"]:
    got.append(os.uname().nodename)
for pid in ("self", "1", "2"):
    try:
        text = open(f"/proc/{pid}/environ", "rb").read() + open(f"/proc/{pid}/cmdline", "rb").read()
    except OSError:
        continue
    got += [f"{word} in {pid}" for word in told["agent_words"] if word.encode() in text]
""",
        hint=MOUNTS,
    ),
    Try(
        name="terminal",
        what="types into a terminal of the machine",
        body="""
import fcntl
for name in ("/dev/tty", "/dev/console", "/dev/tty1"):
    try:
        fd = os.open(name, os.O_RDWR | os.O_NOCTTY)
    except OSError:
        continue
    got.append(name)
for fd in (0, 1, 2):
    for trick in (0x5412, 0x541C):
        try:
            fcntl.ioctl(fd, trick, b"x")
            got.append(f"{trick:#x} on {fd}")
        except OSError as error:
            if error.errno not in (1, 25):
                got.append(f"{trick:#x} on {fd}: {error}")
""",
        hint=KERNEL,
    ),
    Try(
        name="cores",
        what="uses cores or memory that it was not given",
        body="""
have = sorted(os.sched_getaffinity(0))
if have != told["cpus"]:
    got.append(f"cores {have}")
try:
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    if sorted(os.sched_getaffinity(0)) != told["cpus"]:
        got.append(f"took cores {sorted(os.sched_getaffinity(0))}")
except OSError:
    pass
for path in ("/sys/fs/cgroup", "/proc/self/mem/../../sys/fs/cgroup"):
    if os.path.isdir(path) and os.listdir(path):
        got.append(path)
""",
        hint="control groups with cpuset must be there: see cgroup in ouvrage doctor",
    ),
)

PROBE = '''
import ctypes, json, os, socket, subprocess, sys
told = json.load(open("told.json"))
told["open"] = [int(n) for n in os.listdir("/proc/self/fd") if int(n) > 2]
told["open"] = [n for n in told["open"] if os.path.exists(f"/proc/self/fd/{n}")]

def mine(pid):
    """Whether a process descends from this one."""
    while pid > 2:
        try:
            stat = open(f"/proc/{pid}/stat").read()
        except OSError:
            return True
        pid = int(stat[stat.rfind(")") + 2:].split()[1])
    return pid == 2

for name, body in told["tries"]:
    got = []
    try:
        exec(body, {**globals(), "got": got})
    except Exception as error:
        got.append(f"{type(error).__name__}: {error}")
    print(json.dumps({"name": name, "got": got[:8]}), flush=True)
'''
"""Carries out every try, one after the other; each has a line of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bomb:
    """A program that takes all it can, or leaves something behind; ``limit_us`` ends it if need be.

    ``within`` names the figure of the attempt's account that must stay within its limit.
    """

    name: str
    what: str
    program: str
    outcomes: tuple[str, ...]
    within: str
    limit_us: int = 60_000_000


BOMBS: tuple[Bomb, ...] = (
    Bomb(
        name="fork-bomb",
        what="makes processes without end",
        program="""
import os, time
end = time.monotonic() + 0.5
while time.monotonic() < end:
    try:
        os.fork()
    except OSError:
        time.sleep(0.01)
""",
        outcomes=("done", "failed", "out of memory"),
        within="processes",
    ),
    Bomb(
        name="memory-bomb",
        what="takes memory without end",
        program="kept = []\nwhile True: kept.append(bytearray(1 << 20))",
        outcomes=("out of memory",),
        within="memory_bytes",
    ),
    Bomb(
        name="shared-memory-bomb",
        what="takes memory through files in /dev/shm",
        program="""
import os
for number in range(64):
    fd = os.memfd_create("x")
    for target in (fd, os.open(f"/dev/shm/{number}", os.O_CREAT | os.O_WRONLY)):
        try:
            for _ in range(8):
                os.write(target, bytes(1 << 20))
        except OSError:
            pass
""",
        outcomes=("out of memory", "done"),
        within="memory_bytes",
    ),
    Bomb(
        name="disk-bomb",
        what="fills the disk, by bytes and by files",
        program="""
import itertools, os
for place in (os.getcwd(), "/tmp"):
    try:
        with open(f"{place}/bomb", "wb", 0) as file:
            while True:
                file.write(bytes(1 << 20))
    except OSError:
        pass
os.unlink("/scratch/bomb")
try:
    for number in itertools.count():
        os.mkdir(f"/scratch/{number}")
except OSError:
    pass
""",
        outcomes=("done",),
        within="disk_bytes",
    ),
    Bomb(
        name="orphans",
        what="leaves processes behind that ignore every signal",
        program="""
import os, signal, time
for number in range(3):
    if not os.fork():
        os.setsid()
        if os.fork():
            os._exit(0)
        for each in signal.valid_signals() - {9, 19, 17}:
            signal.signal(each, signal.SIG_IGN)
        time.sleep(600)
""",
        outcomes=("done",),
        within="processes",
    ),
    Bomb(
        name="never-ends",
        what="ignores being asked to end",
        program="""
import signal
for each in signal.valid_signals() - {9, 19, 17}:
    signal.signal(each, signal.SIG_IGN)
while True:
    pass
""",
        outcomes=("time limit",),
        within="processes",
        limit_us=300_000,
    ),
    Bomb(
        name="log-bomb",
        what="prints without end",
        program="""
import sys
for _ in range(4000):
    sys.stdout.write("\\x1b]0;owned\\x07" + "x" * 1000)
""",
        outcomes=("done",),
        within="log_bytes",
    ),
    Bomb(
        name="outputs",
        what="has files of the host sent out in place of its own",
        program="""
import os
os.symlink(os.environ["CANARY"], "link")
os.symlink("/etc", "directory")
os.mkfifo("pipe")
open("own", "w").write("own")
""",
        outcomes=("done",),
        within="outputs",
    ),
)
