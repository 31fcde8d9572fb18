"""The statistics behind estimates: binomial and normal tails, moments, score intervals, weighted least squares.

Nothing here knows a mechanism.
"""
