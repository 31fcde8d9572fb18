"""Commands that count on Spark."""
