"""Bottleneck verdicts, scored: real programs, injected causes, and what the meter says of each.

The programs do real work; what holds them up is put there by the kernel's own means (control
groups, traffic shaping, swap) or by their own build, and is written down before they run. The
stand-in for NVIDIA's library is the one part that is simulated.
"""
