"""Bringing a fleet up: from the owner's settings and inventories on record to every file that its Slurm starts from."""
