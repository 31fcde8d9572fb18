"""Telling operators: what changed in collections, the gauges about it, and signed messages to webhooks."""
