"""The books of a fleet that a scheduler runs: what each GPU did, who had it, what stood idle and why, what each account owes."""
