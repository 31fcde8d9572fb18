"""Domains over numpy batches: whole columns of answers to columns of indices and back.

The domains themselves are the device's and are exported again from here, for code that has numpy.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.arrays import U64, flat_index
from tacit.device.domains.domain import Attribute, Bits, Booleans, Categories, Domain, Ordered, Strings
from tacit.device.domains.items import Items
from tacit.device.domains.optional import OptionalDomain
from tacit.device.domains.product import DOMAINS, Product, domain_of
from tacit.device.domains.reals import Buckets, Integers
from tacit.device.domains.text import Text
from tacit.errors import InvalidSpec

__all__ = [
    "DOMAINS",
    "Attribute",
    "Bits",
    "Booleans",
    "Buckets",
    "Categories",
    "Domain",
    "Integers",
    "Items",
    "OptionalDomain",
    "Ordered",
    "Product",
    "Strings",
    "Text",
    "domain_of",
    "indices",
    "join_columns",
    "split_columns",
]


def indices(domain: Domain, values: npt.ArrayLike | Sequence[Any]) -> U64:
    """Return the index of every answer of a batch; every different answer of a numpy column is encoded once.

    >>> indices(Categories("colour", ("red", "blue")), ["blue", "red", "blue"])
    array([1, 0, 1], dtype=uint64)
    """
    column: Any = values
    if not isinstance(values, np.ndarray) or column.ndim != 1 or column.dtype.kind not in "biufU":
        return _as_u64(domain, domain.encode_many(column))
    # Encoding is Python code per value; columns repeat few values many times, so each is encoded once.
    different, places = np.unique(column, return_inverse=True)
    if column.dtype.kind == "f" and column.dtype.itemsize < 8:
        # The shortest decimal of a short float is not that of the double it would be turned into.
        different = different.astype(np.str_)
    return _as_u64(domain, domain.encode_many(different.tolist()))[places]


def _as_u64(domain: Domain, encoded: list[int]) -> U64:
    if domain.size > 1 << 64:
        raise InvalidSpec(f"{domain.kind}: {domain.size} answers do not fit into 64 bits; project to fewer attributes")
    return np.array(encoded, np.uint64)


def join_columns(product: Product, columns: Sequence[U64]) -> U64:
    """Return indices of combinations from one column of indices per attribute; the last attribute varies fastest."""
    _as_u64(product, [])  # The check of the size rules out overflow.
    return flat_index(columns, product.sizes)


def split_columns(product: Product, joined: U64) -> list[U64]:
    """Return one column of indices per attribute from indices of combinations: the inverse of `join_columns`."""
    _as_u64(product, [])
    columns: list[U64] = []
    for size in reversed(product.sizes):
        joined, digit = np.divmod(joined, np.uint64(size))
        columns.append(digit)
    return columns[::-1]
