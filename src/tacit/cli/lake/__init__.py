"""Commands for report files in Parquet."""
