"""Exact numbers: integer coins and thresholds, hashing, canonical JSON, budgets, and the fields of specs."""
