"""Sizes of the published protocols: layers add up, and a chain of no shufflers is refused."""

import pytest

from tacit.errors import InvalidSpec
from tacit.shuffle.mechanisms.costs import oblivious_bytes, sequential_bytes


def test_what_the_first_shuffler_sends_is_what_respondents_send_without_a_layer():
    for shufflers in range(1, 8):
        sizes = sequential_bytes(shufflers)
        assert sizes.server <= sizes.shuffler <= sizes.respondent - 96
    assert sequential_bytes(1).shuffler == sequential_bytes(1).server == 128


def test_the_server_of_an_oblivious_shuffle_receives_the_vectors_of_the_hiders_alone():
    assert [oblivious_bytes(r).server - 384 for r in (3, 5, 7)] == [8, 16, 24]


def test_without_a_shuffler_there_is_no_protocol():
    for sizes in (sequential_bytes, oblivious_bytes):
        with pytest.raises(InvalidSpec, match="0 shufflers, must be at least 1"):
            sizes(0)
