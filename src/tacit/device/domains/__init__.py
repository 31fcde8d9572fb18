"""Domains: which answers a question allows, and the index that stands for each of them."""
