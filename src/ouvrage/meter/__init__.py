"""``ouvrage run``: supervises a command, samples it, spools. Standard library only."""
