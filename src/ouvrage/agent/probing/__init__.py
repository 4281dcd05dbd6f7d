"""The node's watch over itself: a supervisor that touches no driver, and probes in child processes."""
