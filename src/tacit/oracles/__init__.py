"""Frequency oracles: one family a file, client and server half on one set of exact probabilities."""
