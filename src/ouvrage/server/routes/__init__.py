"""The addresses under ``/v1``: each reads its request, calls one service and answers.

Nothing is decided here. A write goes through ``Once``, so that its repetition is answered and not done again.
"""
