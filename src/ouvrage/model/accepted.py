"""What a person says about finished work: how much of it is accepted, and what it was for.

The meter cannot see either. A command that ended with 0 may have made nothing of use, and one that
failed may have left a good result, so acceptance is a statement with its reason, never a default.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAccepted:
    """Whoever judged the work accepts ``units`` of the run's finished units, and ``why``.

    ``unit`` is what was counted when this was said. The latest statement about a run counts.
    """

    KIND: ClassVar[str] = "run.accepted"
    VERSION: ClassVar[int] = 1

    run: str
    units: int
    unit: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCampaign:
    """The run is an attempt at what the campaign is for."""

    KIND: ClassVar[str] = "run.campaign"
    VERSION: ClassVar[int] = 1

    run: str
    campaign: str
