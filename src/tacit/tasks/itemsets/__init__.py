"""Frequent items and itemsets of sets that respondents hold."""
