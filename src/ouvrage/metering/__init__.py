"""From samples and marks to units, time and bottleneck. Pure: see the modules."""
