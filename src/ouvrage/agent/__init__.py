"""What runs on a node: the runner of attempts and, around each, a supervisor that outlives it.

Decides nothing about who runs what; it carries out orders, keeps them on disk before it acts, and reports what it saw.
"""
