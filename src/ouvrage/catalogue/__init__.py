"""The starter catalogue: a few dated prices with their sources, to try a quote before importing any."""
