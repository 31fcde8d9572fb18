"""The schema of a table: its private columns, the domains of their values, and regions of combinations of values."""
