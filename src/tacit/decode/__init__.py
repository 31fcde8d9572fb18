"""Decoders: from corrected counts to estimates where no closed-form inverse exists."""
