"""Figures with the way back to the facts they stand on, and claims made by others."""
