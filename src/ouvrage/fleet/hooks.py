"""The scripts that Slurm calls on a node: before a job, after it, and every few minutes.

Decides that only a CRITICAL node is kept from work (an error of our own never keeps one), that what ran there before runs first
and its word counts, and that a node which somebody drained keeps their reason.
"""

from __future__ import annotations

_PATH = "export PATH=${PATH:-/usr/sbin:/usr/bin:/sbin:/bin}:/usr/local/bin:/opt/ouvrage/bin"
_CHECK = "timeout 50 ouvrage check all"
HOOKS = {"Prolog": "prolog", "Epilog": "epilog", "HealthCheckProgram": "health"}
"""Setting of slurm.conf → the script's file name."""


def hook(name: str, before: str | None = None) -> str:
    """A script by its file name; ``before`` is the program that stood there, a pattern for each that it names in order."""
    return _SCRIPTS[name].replace("BEFORE\n", _before(before))


def _before(program: str | None) -> str:
    if program is None:
        return ""
    return f'for before in {program}; do [ ! -x "$before" ] || "$before" "$@" || exit $?; done\n'


_SCRIPTS = {
    "prolog": f"""#!/bin/sh
# Before a job: a node that is not well gets none. Slurm drains it and puts the job back into the queue.
BEFORE
{_PATH}
{_CHECK} >/dev/null 2>&1
[ $? -ne 2 ]
""",
    "epilog": f"""#!/bin/sh
# After a job: a node that it left in a bad state gets no other one. Slurm drains it.
BEFORE
{_PATH}
{_CHECK} >/dev/null 2>&1
[ $? -ne 2 ]
""",
    "health": f"""#!/bin/sh
# Every few minutes. A node that somebody drained before keeps their reason; nobody's drain is ever lifted here.
BEFORE
{_PATH}
node=${{SLURMD_NODENAME:-$(hostname -s)}}
why=$({_CHECK} --plain 2>&1)
[ $? -eq 2 ] || exit 0
case $(scontrol --oneliner show node "$node") in *" Reason="*) exit 0 ;; esac
scontrol update NodeName="$node" State=DRAIN Reason="ouvrage: $(printf %s "$why" | head -1 | cut -c1-200)"
""",
}
