"""Weighted least squares on grids: a tree per attribute, and estimates of products of their levels."""
