"""From a local mechanism and a crowd to the epsilon and delta that hold against whoever sees shuffled reports."""
