"""What is run and what the verdict must be, stated before it is run.

Two sets. ``DEVELOPMENT`` may be looked at while rules are changed; ``HELD_OUT`` is scored. They
share no combination of program, words and cause, and most programs stand in one of them only.
When a held-out run has led to a change of the rules, its misses go into the development set and the
whole held-out set is drawn anew: the first one, of which 53 of 56 were right, is in the history. A
control is a program of which no cause can be known from outside: there ``unknown`` is right, and it
is counted apart, so that saying nothing never raises the score.
"""

from __future__ import annotations

from dataclasses import dataclass, field

Limits = dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One program, what is injected around it, the verdict expected, and why that one.

    ``limits`` are the arguments of ``injections.around``.
    """

    program: str
    expected: str
    why: str
    limits: Limits = field(default_factory=dict)
    control: bool = False

    @property
    def cause(self) -> str:
        """What was injected, in short."""
        return ", ".join(f"{name} {value:g}" for name, value in self.limits.items()) or "nothing"


def _cases(expected: str, why: str, *rows: tuple[str, Limits], control: bool = False) -> list[Case]:
    return [
        Case(program=program, expected=expected, why=why, limits=limits, control=control)
        for program, limits in rows
    ]


COMPUTES = "nothing is injected that slows it; a core, or the card, works all the time"
ONE_CORE = "several processes could work at once and share one core"
NEIGHBOUR = "a program outside the run takes its core in turn"
QUOTA = "the group's quota stops it in every period"
DISK = "the group may move only so many bytes or requests a second to and from the disk"
NET = "the only road to the other end is shaped; what arrives is hashed at once"
MEMORY = "more is touched than the group may hold, so that pages are thrown out and come back"
FAULT = "the driver says that a fault holds the clocks well below the greatest"
FED = "the loop takes batches faster than its loader makes them"
STARVED = "the card is idle while the processor prepares its next step"
OUTSIDE = "it waits for something of which the machine knows nothing"

DEVELOPMENT = [
    *_cases(
        "computing", COMPUTES,
        ("compress codec=zlib", {}),
        ("compress codec=zlib", {"cores": 1}),
        ("perceptron steps=40", {}),
        ("database synchronous=off", {}),
        ("scan rounds=1", {}),
        ("build jobs=2", {}),
        ("download rounds=4", {"network": 1}),
        ("loop load_ms=5 step_ms=20", {}),
        ("compress codec=bz2 processes=2", {}),
        ("locked threads=4", {}),
        ("loop workers=2 load_ms=3 step_ms=15", {}),
        ("card load=95 work=0.2", {"card": 1}),
        ("card load=95 work=0.2 clock=1300 reasons=0x4", {"card": 1}),
    ),
    *_cases(
        "waiting_cpu", ONE_CORE,
        ("compress codec=zlib processes=2", {"cores": 1}),
        ("build jobs=2", {"cores": 1}),
    ),
    *_cases("waiting_cpu", NEIGHBOUR, ("compress codec=zlib seed=2", {"cores": 1, "neighbours": 1})),
    *_cases(
        "throttled", QUOTA,
        ("perceptron steps=40", {"quota": 0.4}),
        ("compress codec=zlib processes=2", {"quota": 0.6}),
    ),
    *_cases(
        "waiting_storage", DISK,
        ("database synchronous=full", {"write_mb_s": 2}),
        ("scan cold=1", {"read_mb_s": 8}),
        ("checkpoints rows=512", {"write_mb_s": 8}),
        ("card load=20 work=0.1 read_kb=512", {"card": 1, "read_mb_s": 5}),
    ),
    *_cases(
        "waiting_network", NET,
        ("download", {"mbit_s": 8}),
        ("download timeout=30", {"mbit_s": 8}),
    ),
    *_cases(
        "waiting_memory", MEMORY,
        ("embeddings", {"memory_mb": 60}),
        ("groups mb=80", {"memory_mb": 64, "swap_mb": 256}),
    ),
    *_cases("throttled", FAULT, ("card load=95 clock=900 reasons=0x40", {"card": 1})),
    *_cases(
        "waiting_data", FED,
        ("loop load_ms=30 step_ms=10", {}),
        ("loop load_ms=1 pause_ms=40 step_ms=5", {}),
    ),
    *_cases("waiting_data", STARVED, ("card load=30 work=0.95", {"card": 1})),
    *_cases(
        "unknown", OUTSIDE,
        ("waiter every=0.1", {}),
        ("ask", {"network": 1}),
        control=True,
    ),
]  # fmt: skip

HELD_OUT = [
    *_cases(
        "computing", COMPUTES,
        ("compress codec=lzma seed=5", {"cores": 1}),
        ("compress codec=bz2", {}),
        ("parse", {}),
        ("parse seed=4", {"cores": 1}),
        ("solve", {}),
        ("classify seed=6", {}),
        ("images seed=3", {"cores": 1}),
        ("locked threads=3 seed=2", {}),
        ("lookups packed=32768 seed=8", {}),
        ("sheets", {}),
        ("fetch rounds=3", {"network": 1}),
        ("loop workers=1 load_ms=4 step_ms=25 seed=2", {}),
        ("card load=90 work=0.3 seed=6", {"card": 1}),
        ("card load=97 work=0.2 clock=900 reasons=0x4 power_mw=300000", {"card": 1}),
    ),
    *_cases(
        "waiting_cpu", ONE_CORE,
        ("parse processes=3", {"cores": 1}),
        ("compress codec=lzma processes=2", {"cores": 1}),
        ("images processes=4", {"cores": 1}),
        ("build jobs=4 seed=2", {"cores": 1}),
        ("scan rounds=3 processes=3", {"cores": 1}),
    ),
    *_cases(
        "waiting_cpu", NEIGHBOUR,
        ("solve", {"cores": 1, "neighbours": 1}),
        ("parse", {"cores": 1, "neighbours": 2}),
        ("classify seed=2", {"cores": 1, "neighbours": 1}),
    ),
    *_cases(
        "throttled", QUOTA,
        ("parse", {"quota": 0.5}),
        ("solve", {"quota": 0.3}),
        ("images processes=2", {"quota": 0.8}),
        ("frames level=9", {"quota": 0.5}),
        ("build jobs=2 seed=3", {"quota": 0.5}),
    ),
    *_cases(
        "waiting_storage", DISK,
        ("archive", {"read_mb_s": 4}),
        ("archive seed=2", {"write_mb_s": 2}),
        ("sort seed=3", {"write_mb_s": 2}),
        ("lookups cold=1 seed=3", {"read_mb_s": 2}),
        ("lookups cold=1 seed=7", {"read_iops": 40}),
        ("scan cold=1 processes=3", {"read_mb_s": 8}),
        ("database synchronous=full batch=300", {"write_mb_s": 1}),
        ("checkpoints rows=2048", {"write_mb_s": 20}),
        ("card load=15 work=0.1 read_kb=2048", {"card": 1, "read_mb_s": 6}),
    ),
    *_cases(
        "waiting_network", NET,
        ("fetch", {"mbit_s": 6}),
        ("fetch rounds=4", {"mbit_s": 15}),
        ("gather links=4", {"mbit_s": 4}),
        ("upload seed=2", {"mbit_s": 8}),
        ("download threads=2", {"mbit_s": 5}),
        ("download timeout=10 rounds=3", {"mbit_s": 12}),
    ),
    *_cases(
        "waiting_memory", MEMORY,
        ("sheets", {"memory_mb": 70}),
        ("embeddings seed=2", {"memory_mb": 55}),
        ("groups mb=100 seed=5", {"memory_mb": 80, "swap_mb": 256}),
        ("groups mb=70 seed=8", {"memory_mb": 55, "swap_mb": 256}),
    ),
    *_cases(
        "throttled", FAULT,
        ("card load=94 clock=1000 reasons=0x20 seed=2", {"card": 1}),
        ("card load=98 clock=700 reasons=0x80", {"card": 1}),
        ("card load=85 clock=500 reasons=0x8", {"card": 1}),
        ("card load=95 clock=1050 reasons=0x60", {"card": 1}),
    ),
    *_cases(
        "waiting_data", FED,
        ("loop workers=1 load_ms=35 step_ms=8 seed=5", {}),
        ("loop workers=0 load_ms=20 step_ms=10", {}),
        ("loop workers=3 load_ms=1 pause_ms=80 step_ms=4", {}),
        ("loop workers=2 load_ms=1 read_kb=512 step_ms=5", {"read_mb_s": 8}),
        ("loop workers=1 load_ms=50 step_ms=5", {"cores": 1}),
    ),
    *_cases(
        "waiting_data", STARVED,
        ("card load=25 work=1.0 seed=3", {"card": 1}),
        ("card load=40 work=0.9 seed=7", {"card": 1}),
    ),
    *_cases(
        "unknown", OUTSIDE,
        ("waiter every=0.3", {}),
        ("waiter every=0.05", {}),
        ("ask seed=3", {"network": 1, "think_s": 0.5}),
        control=True,
    ),
]  # fmt: skip
