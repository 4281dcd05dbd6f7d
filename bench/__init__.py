"""Measurements of the program itself: how fast the ledger is, and what the meter costs its command."""
