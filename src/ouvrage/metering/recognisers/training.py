"""What training tools print in a form of their own: Ultralytics, Transformers, DeepSpeed, nanoGPT.

Decides which of their lines mark a unit. Keras and PyTorch Lightning need no rule here: they print
``Epoch 3/10``, which ``words`` reads.
"""

from __future__ import annotations

from ouvrage.metering.recognisers.rule import CLOSE, END, HEAD, Reading, Rule, found, said

# "      3/100      1.2G      1.178 … 13        640: 100%|██| 8/8 [00:03<00:00,  2.5it/s]", and
# since 8.3.2xx "640: 62% ━━━━━━━───── 5/8 2.5it/s 0.1s": epoch, memory, losses, instances, size.
_TABLE = (
    rb"^\s{2,}(\d{1,6})/(\d{1,6})\s+\d[\d.]*[KMGT]?B?\s+(?:-?(?:\d[\d.e+-]*|nan|inf)\s+){2,12}"
    rb"\d{2,5}:\s{1,4}\d{1,3}%\D*(\d{1,9})/\d{1,9}"
)
_EPOCH_OF_ROW = rb"^\s*\{'.{1,7000}'epoch': '?(\d{1,9})(?:\.(\d{1,9}))?'?[,}]"


def _ultralytics(line: bytes) -> Reading | None:
    match = found(_TABLE, line)
    if match is None:
        return None
    return Reading(HEAD, int(match[1]), int(match[2]), first=int(match[3]) <= 1)


def _transformers(line: bytes) -> Reading | None:
    """The epoch is a fraction: a row at 1.2 says that one has ended, but not when."""
    match = found(_EPOCH_OF_ROW, line)
    if match is None or int(match[1]) < 1:
        return None
    return Reading(END, int(match[1]), exact=not int(match[2] or 0))


RULES = (
    *(Rule("ultralytics", "epoch", needle, _ultralytics) for needle in (b"%|", b"% \xe2\x94")),
    Rule("ultralytics", "epoch", b"epochs completed in ",
         said(rb"^\s*\d{1,6} epochs completed in [\d.]+ hours", CLOSE)),
    Rule("transformers", "epoch", b"'epoch': ", _transformers),
    Rule("deepspeed", "step", b", skipped=",
         said(rb"(?:\[Rank \d+\] |^)step=(?P<n>[1-9]\d{0,11}), skipped=\d", END)),
    Rule("deepspeed", "step", b"RunningAvgSamplesPerSec",
         said(rb"/global_step=(?P<n>[1-9]\d{0,11}), RunningAvgSamplesPerSec=", END), gate=b"="),
    Rule("nanogpt", "iteration", b"iter ",
         said(rb"^\s*iter (?P<n>\d{1,12}):? .{0,20}loss", END)),
)  # fmt: skip
