"""What stands beside the files of a plan: the script that puts them in place, the list of them, and Ansible's list of hosts.

Decides the form of a written plan: a directory for each role with the files by their full paths, so that it can be copied into an
image as it is, and one script that does the same by hand, over SSH and here. Owners and modes are in the list, for other tools.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ouvrage.fleet.plan import ALL, CONTROLLER, NODE, Directory, File, Plan
from ouvrage.model.bringup import FleetMember, FleetSettings

SCRIPT, LISTED, HOSTS = "install.sh", "files.json", "hosts.ini"
_HEAD = """\
#!/bin/sh
# Written by ouvrage fleet. As root on a host of the fleet: sh install.sh put|start|all controller|node
# put: files and directories in place, whole or not at all. start: the commands. all: both.
set -eu
cd "$(dirname "$0")"
umask 022
what=$1
role=$2
[ "$role" = controller ] || [ "$role" = node ] || { echo "no role: $role" >&2; exit 2; }
dir() { [ "$1" = all ] || [ "$1" = "$role" ] || return 0; install -d -o "$3" -g "$3" -m "$4" "$2"; }
put() {
  [ "$1" = all ] || [ "$1" = "$role" ] || return 0
  cmp -s "$1$2" "$2" && [ "$(stat -c %U:%a "$2")" = "$3:$4" ] && return 0
  mkdir -p "$(dirname "$2")"
  keep "$2"
  install -o "$3" -g "$3" -m "$4" "$1$2" "$2.new"
  mv "$2.new" "$2"
  echo "put $2"
}
keep() {  # what somebody else wrote stays beside, once
  case $1 in *.conf|*.lua|*.key) ;; *) return 0 ;; esac
  [ -f "$1" ] && [ ! -e "$1.before-ouvrage" ] || return 0
  head -n 1 "$1" | grep -q "Written by ouvrage fleet" || cp -p "$1" "$1.before-ouvrage"
}
tell() {
  [ "$1" = all ] || [ "$1" = "$role" ] || return 0
  echo "run $2"
  eval "$2"
}
for user in munge slurm; do
  id "$user" >/dev/null 2>&1 && continue
  echo "there is no user $user here. Install first, on Debian: apt-get install munge slurmd slurm-client;" \
    "for the controller munge slurmctld slurmdbd slurmrestd slurm-client slurm-wlm-mysql-plugin slurm-wlm-jwt-plugin mariadb-server" >&2
  exit 1
done
"""


def install_sh(plan: Plan) -> str:
    """The script of a plan."""
    return "".join([
        _HEAD,
        'if [ "$what" != start ]; then\n', *_lines(plan), "fi\n",
        'if [ "$what" != put ]; then\n  :\n', *(f"  tell {each.role} {_quoted(each.line)}  # {each.why}\n" for each in plan.commands), "fi\n",
    ])  # fmt: skip


def _lines(plan: Plan) -> Iterator[str]:
    for each in (*plan.directories, *plan.files):
        verb = "dir" if isinstance(each, Directory) else "put"
        yield f"  {verb} {each.role} {each.path} {each.owner} {each.mode:o}\n"


def _quoted(line: str) -> str:
    assert "'" not in line, line
    return f"'{line}'"


def listed(plan: Plan) -> list[dict[str, str]]:
    """Every file with what a tool needs to put it in place."""
    return [
        {
            "role": each.role,
            "path": each.path,
            "owner": each.owner,
            "mode": f"{each.mode:04o}",
            "sha256": each.sha256,
        }
        for each in plan.files
    ]


def hosts_ini(settings: FleetSettings, members: Sequence[FleetMember]) -> str:
    """The hosts by role, as Ansible reads them."""
    lines = ["# Written by ouvrage fleet.", f"[{CONTROLLER}]"]
    lines.append(f"{settings.controller} ansible_host={settings.address or settings.controller}")
    lines += ["", f"[{NODE}]", *(f"{m.node} ansible_host={m.address}" for m in members), ""]
    return "\n".join(lines)


def inside(file: File) -> str:
    """Where a file lies in a written plan."""
    assert file.role in (ALL, CONTROLLER, NODE)
    return f"{file.role}{file.path}"
