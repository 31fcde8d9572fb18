"""Counting on more than one machine: what every engine needs (`parts`, `cells`, `row_sums`), and Spark (`spark`)."""
