"""What everything else is made of: errors, grades, exact numbers, time, ids.

Standard library only, no I/O, no clock, no chance: see ``docs/concepts/overview.md``.
"""
