"""Decisions over many possibilities at once: vectors where the exact core would take too long."""
