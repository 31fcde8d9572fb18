"""The collector's side of shuffled collections: sessions, letters of shufflers, opening, release, transcripts."""
