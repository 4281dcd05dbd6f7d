"""The ladder of remedies: which rung comes next, and when a person has to come.

Decides by what was tried before and how it ended; nothing is done here.
"""

from __future__ import annotations

from ouvrage.model.health import RUNGS

TO_DO = {
    "restart_job": "start the job again; the machine is not at fault",
    "gpu_reset": "keep new work away, let it end, reset the GPU",
    "reboot": "keep new work away, let it end, reboot the machine",
    "power_cycle": "keep new work away, take the machine's power away and give it back",
    "diagnostic": "keep new work away, let it end, run a diagnostic",
    "replace": "keep new work away, replace the part",
    "person": "a person has to look",
    "drain": "keep new work away and let what runs end",
    "update_software": "update driver or firmware in the next window",
    "look": "look at it in the next window",
}
"""Every action but ``none`` in words."""


def runbook_of(action: str) -> str | None:
    """The name of the page that tells a person how a rung is climbed; None for what is no rung."""
    return action.replace("_", "-") if action in RUNGS else None
