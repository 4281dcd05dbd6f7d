"""Decisions about simulated owners, scored against what is true of the worlds that made them."""
