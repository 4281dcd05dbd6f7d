"""Exports of marketplaces, meters, banks and suppliers, each read into statements or told by line."""
