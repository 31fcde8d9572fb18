"""Families: several questions of which a respondent answers one, or all."""
