"""A Slurm as the one who gives out places: what is asked of it, what it says, what follows. The engine is ``engine``."""
