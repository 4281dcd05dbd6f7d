"""Recognisers of finished units in what known programs print, one small rule each.

``rule`` is the form of a rule, ``scan`` tries them all on the lines of an output, ``tally`` turns
what they read into marks. The others hold the rules.
"""
