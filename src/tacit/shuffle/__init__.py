"""What shuffling reports is worth: amplification by accountants, certificates of it, and plans that use it."""
