"""Ranges, prefixes, quantiles and rectangles of ordered values."""
