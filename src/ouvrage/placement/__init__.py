"""Who runs next and where: a snapshot and a moment in, a plan with its reasons out.

Pure. Decides order, places, preemption and refusals, and why for each; it starts nothing and knows no clock.
"""
