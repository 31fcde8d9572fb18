"""Reports of shuffled collections: sealed for shufflers, sent to them, and looked up afterwards.

Loaded for shuffled documents alone: unlike the rest of the client it needs the extra `shuffle` (see decision 0021).
"""
