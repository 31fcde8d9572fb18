"""What the proofs of samplers share."""

import pytest
from tests.laws.intervals import lane_by_lane

from tacit.device.kinds import rappor as rappor_module
from tacit.device.kinds import sketch as sketch_module
from tacit.device.kinds import unary as unary_module


@pytest.fixture
def proven_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the lane sampler as proved, so that kinds built on it can be explored as a whole."""
    for module in (unary_module, rappor_module, sketch_module):
        monkeypatch.setattr(module, "draw_bits", lane_by_lane)
