"""Commands of those who run a shuffler or a relay, and what commands show of sessions and transcripts."""
