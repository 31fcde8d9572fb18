"""The conformance suite: laws that every mechanism keeps, shipped so that new kinds can be held to them."""
