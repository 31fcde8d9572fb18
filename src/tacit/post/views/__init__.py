"""Consistency of overlapping marginal tables (views): agreement, non-negativity, and tables that no view covers.

`table.py` has the algebra of tables, `components.py` the agreement, `nonneg.py` the rounds of non-negativity,
`reconstruct.py` fits uncovered tables, `variance.py` gives exact variances, `answers.py` puts it together.
"""
