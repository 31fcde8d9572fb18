"""Baselines: protocols and estimators that exist for comparison alone; nothing a collection offers."""
