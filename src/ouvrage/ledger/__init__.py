"""The facts: what a statement is, which kinds exist, what was true as known at a moment."""
