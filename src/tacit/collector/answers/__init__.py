"""Answers and queries of published collections."""
