"""Weighted least squares on trees over one ordered attribute: flat, hierarchical and Haar answers are one fit.

`levels.py` fits the leaves, `variance.py` gives the variance of any linear answer, `spans.py` that of ranges quickly.
"""
