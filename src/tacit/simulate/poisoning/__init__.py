"""Poisoning in simulation: attackers who send made-up reports, what they gain, and whether it shows.

`attacks.py` makes fake reports for every oracle, `composed.py` for mechanisms whose respondents answer one of several
members (ranges, joint tables, prefixes, SQL), `run.py` mixes them into honest reports and measures.
"""
