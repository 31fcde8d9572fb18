"""From the text of a query to a syntax tree of our own."""
