"""What a run's GPUs say about where its time went.

Asked only for the time between the first and the last moment at which one of the run's GPUs was
seen working: before and after it, and where no GPU works at all, the command is judged by its
processes alone. Which GPU speaks is decided moment by moment, by the greatest load: that is the
least time in which at least one of them can have worked.
"""

from __future__ import annotations

from dataclasses import dataclass

from ouvrage.metering.run_view import RunView
from ouvrage.model.gpus import RunGpuWindow
from ouvrage.model.runs import RunWindow

GPU_RULE = (
    "while the run's GPUs were in use: computing while one ran a kernel, less the part its clocks "
    "were held down by a fault (heat, power brake; never its power cap), which is throttled; of the "
    "rest, throttled by the cgroup's counter; waiting for data while the processes worked and no "
    "GPU did, as far as that is sure from both shares; then memory, storage and network by the "
    "evidence below; then waiting for data as far as the processes worked at all, and for a core by the run "
    "delay; unknown otherwise"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuLoad:
    """A stretch of a window that the GPUs can speak of: all in microseconds."""

    length: int
    covered: int
    busy: int
    slowed: int


class GpuTime:
    """The GPUs of one run, asked window by window."""

    def __init__(self, view: RunView) -> None:
        chosen = {device.gpu for device in view.devices if device.chosen and not device.mig}
        self._windows = [w for w in view.gpu_windows if w.gpu in chosen]
        used = [w for w in self._windows if w.used_from_us is not None]
        self.from_us = min((w.used_from_us or 0 for w in used), default=0)
        self.to_us = max((w.used_to_us or 0 for w in used), default=0)

    @property
    def speaks(self) -> bool:
        """Whether a GPU of the run was seen working."""
        return self.to_us > self.from_us

    def load(self, window: RunWindow) -> GpuLoad | None:
        """What the GPUs say of their part of a window; None where they have none in it."""
        start, end = max(window.from_us, self.from_us), min(window.to_us, self.to_us)
        if start >= end:
            return None
        busy = slowed = covered = 0
        for card in {w.gpu for w in self._windows}:
            parts = [w for w in self._windows if w.gpu == card]
            worked = self._worked(parts, "busy_us", start, end)
            covered = max(covered, _within(parts, "busy_covered_us", start, end))
            if worked > busy:
                busy, slowed = worked, self._worked(parts, "slowed_us", start, end)
        length = end - start
        covered, busy = min(covered, length), min(busy, covered, length)
        return GpuLoad(length=length, covered=covered, busy=busy, slowed=min(slowed, busy))

    def _worked(self, windows: list[RunGpuWindow], name: str, start: int, end: int) -> int:
        """Work of some windows in a period: it lies in the part of each that the GPU was used in."""
        total = 0
        for window in windows:
            begin, finish = max(window.from_us, self.from_us), min(window.to_us, self.to_us)
            overlap = min(finish, end) - max(begin, start)
            if overlap > 0:
                total += (getattr(window, name) or 0) * overlap // (finish - begin)
        return total


def _within(windows: list[RunGpuWindow], name: str, start: int, end: int) -> int:
    """An amount of some windows, as far as it falls in a period."""
    total = 0
    for window in windows:
        overlap = min(window.to_us, end) - max(window.from_us, start)
        if overlap > 0:
            total += (getattr(window, name) or 0) * overlap // (window.to_us - window.from_us)
    return total
