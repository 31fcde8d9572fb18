"""Answers to SQL over rows whose private columns are known only as noisy reports."""
