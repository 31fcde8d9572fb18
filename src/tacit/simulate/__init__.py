"""Simulated populations and collections, with fast and insecure coins: for planning and tests, never real reports.

Every task has a module that simulates it end to end and compares the error with the prediction of its formulas.
"""
