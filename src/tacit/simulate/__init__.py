"""Simulated populations and fast, insecure coins: for planning and tests, never for a real report."""
