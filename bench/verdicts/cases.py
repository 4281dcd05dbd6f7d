"""What is run and what the verdict must be, stated before it is run.

Two sets. ``DEVELOPMENT`` may be looked at while rules are changed; ``HELD_OUT`` is scored. They
share no combination of program, words and cause, and most programs stand in one of them only. A
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
        ("make jobs=2", {}),
        ("download rounds=4", {"network": 1}),
        ("loop load_ms=5 step_ms=20", {}),
        ("card load=95 work=0.2", {"card": 1}),
        ("card load=95 work=0.2 clock=1300 reasons=0x4", {"card": 1}),
    ),
    *_cases(
        "waiting_cpu", ONE_CORE,
        ("compress codec=zlib processes=2", {"cores": 1}),
        ("make jobs=2", {"cores": 1}),
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
        ("compress codec=lzma", {}),
        ("compress codec=bz2 processes=2", {}),
        ("classify", {}),
        ("classify seed=3", {"cores": 1}),
        ("images", {}),
        ("locked threads=4", {}),
        ("lookups packed=65536", {}),
        ("groups mb=40", {}),
        ("database synchronous=off batch=3000 seed=7", {}),
        ("download pack=1", {"network": 1}),
        ("loop workers=2 load_ms=3 step_ms=15", {}),
        ("card load=85 work=0.4 seed=5", {"card": 1}),
        ("card load=98 work=0.3 clock=1100 reasons=0x4 power_mw=500000", {"card": 1}),
    ),
    *_cases(
        "waiting_cpu", ONE_CORE,
        ("compress codec=lzma processes=3", {"cores": 1}),
        ("compress codec=bz2 processes=2 seed=4", {"cores": 1}),
        ("images processes=2", {"cores": 1}),
        ("make jobs=3", {"cores": 1}),
        ("scan rounds=2 processes=2", {"cores": 1}),
    ),
    *_cases(
        "waiting_cpu", NEIGHBOUR,
        ("classify seed=8", {"cores": 1, "neighbours": 1}),
        ("images seed=2", {"cores": 1, "neighbours": 2}),
        ("perceptron steps=15", {"cores": 1, "neighbours": 1}),
    ),
    *_cases(
        "throttled", QUOTA,
        ("images", {"quota": 0.5}),
        ("classify", {"quota": 0.3}),
        ("compress codec=lzma processes=2", {"quota": 0.8}),
        ("frames level=6", {"quota": 0.4}),
        ("locked threads=3", {"quota": 0.6}),
    ),
    *_cases(
        "waiting_storage", DISK,
        ("sort", {"read_mb_s": 3, "write_mb_s": 3}),
        ("lookups cold=1", {"read_mb_s": 3}),
        ("lookups cold=1 seed=5", {"read_iops": 60}),
        ("scan cold=1 processes=2", {"read_mb_s": 5}),
        ("scan cold=1 rounds=4", {"read_mb_s": 15}),
        ("database synchronous=full batch=2000", {"write_mb_s": 1}),
        ("checkpoints rows=1024", {"write_mb_s": 12}),
        ("checkpoints rows=128 steps=8", {"write_mb_s": 1}),
        ("card load=12 work=0.05 read_kb=1024", {"card": 1, "read_mb_s": 3}),
    ),
    *_cases(
        "waiting_network", NET,
        ("gather links=3", {"mbit_s": 6}),
        ("gather links=6 rounds=2", {"mbit_s": 20}),
        ("upload", {"mbit_s": 5}),
        ("upload rounds=3", {"mbit_s": 1}),
        ("download threads=3", {"mbit_s": 10}),
        ("download timeout=20 rounds=2", {"mbit_s": 3}),
    ),
    *_cases(
        "waiting_memory", MEMORY,
        ("embeddings seed=4", {"memory_mb": 50}),
        ("embeddings seed=9", {"memory_mb": 80}),
        ("groups mb=90 seed=3", {"memory_mb": 70, "swap_mb": 256}),
        ("groups mb=60 seed=6", {"memory_mb": 50, "swap_mb": 256}),
    ),
    *_cases(
        "throttled", FAULT,
        ("card load=96 clock=1100 reasons=0x20", {"card": 1}),
        ("card load=92 clock=800 reasons=0x80", {"card": 1}),
        ("card load=75 clock=600 reasons=0x8", {"card": 1}),
        ("card load=97 clock=1000 reasons=0x44", {"card": 1}),
    ),
    *_cases(
        "waiting_data", FED,
        ("loop workers=1 load_ms=40 step_ms=12 seed=3", {}),
        ("loop workers=0 load_ms=15 step_ms=15", {}),
        ("loop workers=2 load_ms=1 pause_ms=60 step_ms=5", {}),
        ("loop workers=1 load_ms=1 read_kb=256 step_ms=5", {"read_mb_s": 6}),
        ("loop workers=1 load_ms=40 step_ms=4", {"cores": 1}),
    ),
    *_cases(
        "waiting_data", STARVED,
        ("card load=20 work=1.0", {"card": 1}),
        ("card load=45 work=0.9 seed=4", {"card": 1}),
    ),
    *_cases(
        "unknown", OUTSIDE,
        ("waiter every=0.5", {}),
        ("waiter every=0.02", {}),
        ("ask seed=2", {"network": 1, "think_s": 0.8}),
        control=True,
    ),
]  # fmt: skip
