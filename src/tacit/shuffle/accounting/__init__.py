"""Accountants: central epsilon and delta of shuffled reports, from a local mechanism and a number of respondents."""
