"""Report files: one Parquet layout for the reports of any collection, where such files are kept, and counting them."""
