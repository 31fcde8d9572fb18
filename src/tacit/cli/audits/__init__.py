"""`tacit audit` and `tacit conformance`: privacy from inside and from outside."""
