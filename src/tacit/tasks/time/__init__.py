"""Repeated collections: what each way of asking again guarantees, and which one to choose inside one guarantee."""
