"""Answering a parsed query from noisy reports."""
