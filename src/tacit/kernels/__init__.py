"""The hot loops of the server: counting supports, bits and codes, transforms, batches of noisy reports, short hashes.

Every kernel exists twice: in C (`native.py` calls the compiled library) and in numpy (`twin.py`). Both give the same
integers bit for bit, which the tests compare. The choice is made once, here, when the package is imported; callers
import the kernels from this package and never from one of the two.
"""

from tacit.kernels import twin
from tacit.kernels.native import Native, load
from tacit.kernels.twin import F64, I64, U8, U32, U64, buckets_of, hash32, mix32, uniform

_library = load()

compiled = _library is not None
"""Whether the C core is in use."""

_core = twin if _library is None else Native(_library)

hash_support = _core.hash_support
hash_matches = _core.hash_matches
pooled_support = _core.pooled_support
bit_columns = _core.bit_columns
bit_counts = _core.bit_counts
set_columns = _core.set_columns
histogram = _core.histogram
count_members = _core.count_members
count_spans = _core.count_spans
walsh_hadamard = _core.walsh_hadamard
draw_bits = _core.draw_bits
draw_hashed_bits = _core.draw_hashed_bits
affine_support = _core.affine_support
draw_subsets = _core.draw_subsets
draw_subspaces = _core.draw_subspaces
follow = _core.follow
follow_lanes = _core.follow_lanes
isotonic = _core.isotonic
expand_keys = _core.expand_keys
sha256_rows = _core.sha256_rows
report_planes = _core.report_planes
hash_planes = _core.hash_planes
co_support = _core.co_support
valid_spans = _core.valid_spans

__all__ = [
    "F64",
    "I64",
    "U8",
    "U32",
    "U64",
    "affine_support",
    "bit_columns",
    "bit_counts",
    "buckets_of",
    "co_support",
    "compiled",
    "count_members",
    "count_spans",
    "draw_bits",
    "draw_hashed_bits",
    "draw_subsets",
    "draw_subspaces",
    "expand_keys",
    "follow",
    "follow_lanes",
    "hash32",
    "hash_matches",
    "hash_planes",
    "hash_support",
    "histogram",
    "isotonic",
    "mix32",
    "pooled_support",
    "report_planes",
    "set_columns",
    "sha256_rows",
    "uniform",
    "valid_spans",
    "walsh_hadamard",
]
