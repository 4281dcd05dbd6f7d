"""What an Xid number means: the errors that NVIDIA's driver reports of a GPU, in our own words.

Decides what a reader of a run should know first: whose fault it most likely is, and what to do. Numbers
and their sorts follow NVIDIA's catalogue of Xid errors (docs.nvidia.com, Xid errors, October 2025);
public tables disagree on about a dozen of them. A number that is not listed here is shown alone.
"""

from __future__ import annotations

PROGRAM = "most often the program's own fault"
EITHER = "the program's fault or the hardware's: suspect the card when it comes again"
RESET = "the GPU needs a reset, and what ran on it is in doubt"
MACHINE = "the machine needs a restart; a card that stays away needs its owner"
HARMLESS = "harmless by itself"

XIDS: dict[int, tuple[str, str]] = {
    8: ("work on the GPU stopped: a channel was idle too long", PROGRAM),
    11: ("a bad stream of commands", PROGRAM),
    13: ("exception in the compute engine: a bad address or instruction", EITHER),
    31: ("page fault in the GPU's memory: a bad pointer", EITHER),
    32: ("a corrupted buffer of commands", EITHER),
    38: ("the firmware's watchdog for context switches", HARMLESS),
    43: ("a fault of the program stopped its channel", PROGRAM),
    45: (
        "channels removed after an earlier error, or as the program ended",
        "look at what came before",
    ),
    46: ("the GPU stopped and the driver gave up waiting", RESET),
    48: ("memory error of two bits, not corrected", RESET),
    54: ("an auxiliary power lead is missing", MACHINE),
    57: ("training of the memory's link failed", RESET),
    58: ("the memory's link is not stable", RESET),
    61: ("the power controller stopped at a breakpoint", RESET),
    62: ("the power controller halted", RESET),
    63: ("a row of memory is remapped at the next reset", HARMLESS),
    64: ("remapping a row of memory could not be recorded", RESET),
    68: ("exception in the video decoder", EITHER),
    69: ("error in the graphics engine's class", PROGRAM),
    74: ("error of an NVLink", RESET),
    79: ("the GPU no longer answers on PCIe", MACHINE),
    80: ("command data failed its checksum", EITHER),
    92: ("many corrected memory errors", "the card is getting worse; no harm yet"),
    94: (
        "memory error, contained in one program",
        "that program's work is lost; reset the GPU soon",
    ),
    95: ("memory error, not contained", RESET),
    109: ("time-out of a context switch", RESET),
    119: ("the GPU's system processor did not answer", RESET),
    120: ("the GPU's system processor reported an error", RESET),
    121: ("a link between chips corrected itself", HARMLESS),
    136: ("training of an NVLink failed", RESET),
    137: ("access over NVLink without the right to it", PROGRAM),
    140: ("memory error that escaped the usual handling", RESET),
    143: ("the GPU could not be initialised", RESET),
    144: ("error of an NVLink unit", RESET),
    154: ("the driver changed which recovery it asks for", "look at what came before"),
    156: ("a faulty part was retired", RESET),
    158: ("time-out of the whole GPU", RESET),
}


def meaning(xid: int) -> str:
    """What a number means and what to make of it; empty where it is not listed."""
    found = XIDS.get(xid)
    return f"{found[0]}; {found[1]}" if found else ""
