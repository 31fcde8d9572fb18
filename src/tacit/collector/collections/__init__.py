"""Collections: drafts, publishing, rounds, access, retention."""
