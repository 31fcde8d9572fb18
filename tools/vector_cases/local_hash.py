"""Cases of local hashing."""

from typing import Any

Good = tuple[str, dict[str, Any], list[Any]]
Bad = tuple[str, dict[str, Any], str]

_WORD = 1 << 64


def _good(**extra: Any) -> list[Good]:
    return [
        ("size_two", {"size": 2, "epsilon": "1"} | extra, [0, 1]),
        ("size_not_power_of_two", {"size": 1000, "epsilon": "1"} | extra, [0, 500, 999]),
        ("size_53_bits", {"size": 1 << 53, "epsilon": "1"} | extra, [0, (1 << 53) - 1]),
        ("size_64_bits", {"size": _WORD, "epsilon": "1"} | extra, [0, 1 << 32, 1 << 53, 1 << 63, _WORD - 1]),
        ("smallest_epsilon", {"size": 100, "epsilon": "0.001"} | extra, [0, 99]),
        ("largest_epsilon", {"size": 100, "epsilon": "32"} | extra, [0, 99]),
        ("share", {"size": 100, "epsilon": {"of": "4", "share": "1/3"}} | extra, [0, 99]),
    ]


def _bad(**extra: Any) -> list[Bad]:
    small = {"size": 5, "epsilon": "1"} | extra
    return [
        ("epsilon_zero", {"spec": small | {"epsilon": "0"}}, "InvalidSpec"),
        ("epsilon_float", {"spec": small | {"epsilon": 0.5}}, "InvalidSpec"),
        ("size_one", {"spec": small | {"size": 1}}, "InvalidSpec"),
        ("size_above_64_bits", {"spec": small | {"size": str(_WORD + 1)}}, "InvalidSpec"),
        ("size_21_digits", {"spec": small | {"size": "000000000000000000005"}}, "InvalidSpec"),
        ("unknown_field", {"spec": small | {"colour": "red"}}, "InvalidSpec"),
        ("value_out_of_domain", {"spec": small, "value": 5}, "InvalidValue"),
        ("value_out_of_64_bits", {"spec": small | {"size": str(_WORD)}, "value": _WORD}, "InvalidValue"),
    ]


_BUCKETS: list[Bad] = [
    ("buckets_one", {"spec": {"size": 5, "epsilon": "1", "buckets": 1}}, "InvalidSpec"),
    ("buckets_too_many", {"spec": {"size": 5, "epsilon": "1", "buckets": 65537}}, "InvalidSpec"),
    ("buckets_missing", {"spec": {"size": 5, "epsilon": "1"}}, "InvalidSpec"),
]
_POOL = {"pool": 100, "key": 123456789}


def _with(cases: list[Bad], **extra: Any) -> list[Bad]:
    return [(name, case | {"spec": extra | case["spec"]}, error) for name, case, error in cases]


_POOLED: list[Bad] = [
    ("pool_zero", {"spec": {"size": 5, "epsilon": "1", "pool": 0, "key": 1}}, "InvalidSpec"),
    ("pool_too_large", {"spec": {"size": 5, "epsilon": "1", "pool": (1 << 24) + 1, "key": 1}}, "InvalidSpec"),
    ("key_too_large", {"spec": {"size": 5, "epsilon": "1", "pool": 1, "key": 1 << 32}}, "InvalidSpec"),
    ("key_negative", {"spec": {"size": 5, "epsilon": "1", "pool": 1, "key": -1}}, "InvalidSpec"),
]
_SMALL_OLH = {"size": 5, "epsilon": "1", "buckets": 3, "state": "counts"}

CASES: dict[str, list[Good]] = {
    "blh": _good(),
    "olh": [
        *_good(),
        ("buckets_two", {"size": 50, "epsilon": "1", "buckets": 2}, [0, 49]),
        ("buckets_256", {"size": 50, "epsilon": "5.5", "buckets": 256, "state": "log"}, [0, 49]),
        ("buckets_257", {"size": 50, "epsilon": "5.5", "buckets": 257}, [0, 49]),
        ("buckets_most", {"size": 50, "epsilon": "12", "buckets": 65536}, [0, 49]),
    ],
    "flh": [
        *_good(**_POOL),
        ("pool_one", {"size": 50, "epsilon": "1", "pool": 1, "key": 0}, [0, 49]),
        (
            "pool_most",
            {"size": 50, "epsilon": "12", "pool": 1 << 24, "key": (1 << 32) - 1, "buckets": 65536},
            [0, 49],
        ),
    ],
    "rmp": _good(**_POOL),
}

BAD: dict[str, list[Bad]] = {
    "blh": [
        *_bad(),
        (
            "bucket_out_of_range",
            {"spec": {"size": 5, "epsilon": "1"}, "report": "0000000002"},
            "ReportRejected",
        ),
        ("report_too_short", {"spec": {"size": 5, "epsilon": "1"}, "report": "00000001"}, "ReportRejected"),
    ],
    "olh": [
        *_bad(buckets=3, state="counts"),
        *_with(_BUCKETS, state="counts"),
        ("state_unknown", {"spec": _SMALL_OLH | {"state": "heap"}}, "InvalidSpec"),
        ("bucket_out_of_range", {"spec": _SMALL_OLH, "report": "0000000003"}, "ReportRejected"),
    ],
    "flh": [
        *_bad(**_POOL, buckets=3),
        *_with(_BUCKETS, **_POOL),
        *_with(_POOLED, buckets=3),
        (
            "code_out_of_range",
            {"spec": {"size": 5, "epsilon": "1", "buckets": 3, "pool": 10, "key": 1}, "report": "1e"},
            "ReportRejected",
        ),
    ],
    "rmp": [
        *_bad(**_POOL),
        *_POOLED,
        (
            "code_out_of_range",
            {"spec": {"size": 5, "epsilon": "1"} | _POOL, "report": "c8"},
            "ReportRejected",
        ),
    ],
}
