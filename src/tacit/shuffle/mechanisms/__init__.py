"""Mechanisms for shuffled reports: planned oracles, messages by location, fake reports, and a prefix tree over them."""
