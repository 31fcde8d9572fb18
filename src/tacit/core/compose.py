"""Composed mechanisms: `OneOf` asks every respondent one question, `AllOf` asks all of them."""

from tacit.core.all_of import MAX_JOINT_CELLS, AllOf
from tacit.core.members import PerMember
from tacit.core.one_of import OneOf
from tacit.device.families.compose import Family, Questions

__all__ = ["MAX_JOINT_CELLS", "AllOf", "Family", "OneOf", "PerMember", "Questions"]
