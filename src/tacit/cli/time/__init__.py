"""Commands about repeated collections: plans; series of a collection are in `tacit collection`."""
