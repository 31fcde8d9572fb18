"""Designs: which levels of which trees respondents answer, and how a region of private values is a sum of nodes."""
