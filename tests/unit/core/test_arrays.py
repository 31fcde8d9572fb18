"""Indices of combinations: one function for all mixed-radix numbers."""

from itertools import product

import numpy as np

from tacit.arrays import crossed_index, flat_index


def test_flat_indices_are_those_of_a_table_in_memory():
    rng, sizes = np.random.default_rng(1), (3, 1, 7, 2)
    digits = [rng.integers(0, size, 50) for size in sizes]
    assert np.array_equal(flat_index(digits, sizes), np.ravel_multi_index(tuple(digits), sizes))


def test_crossed_indices_are_those_of_all_combinations_the_last_fastest():
    sides, sizes = [np.array([2, 0]), np.array([4]), np.array([1, 2, 3])], (3, 5, 4)
    assert crossed_index(sides, sizes).tolist() == [20 * a + 4 * b + c for a, b, c in product(*sides)]
    assert crossed_index([np.array([5, 3])], [9]).tolist() == [5, 3]
    assert crossed_index([np.array([1]), np.zeros(0, np.int64)], [2, 3]).tolist() == []


def test_a_single_attribute_may_fill_all_64_bits():
    largest = np.array([(1 << 64) - 1], np.uint64)
    assert flat_index([largest], [1 << 64]).tolist() == [(1 << 64) - 1]
    assert flat_index([largest >> np.uint64(1), np.array([1], np.uint64)], [1 << 63, 2]).tolist() == [(1 << 64) - 1]
