"""Kinds: the device half of every mechanism, one family of formulas a file."""
