"""Sizes of batches and folds, and intervals of background chores."""

from dataclasses import dataclass

MOST_BATCH_ROWS, MOST_BATCH_BYTES = 1 << 18, 1 << 25
"""Limits of one batch with rows, measured decoded and not as sent."""

MOST_WAITING_BYTES = 2 * MOST_BATCH_BYTES
"""Bytes that may be queued for the writer. It exceeds the largest batch, which would otherwise never fit."""


@dataclass(frozen=True)
class Intervals:
    """Periods of the background chores, and how long to wait before something is deleted; in seconds."""

    fold: float = 0.25
    """Between two folds of batches into tallies."""
    seal: float = 5.0
    """Between two segments of one collection; rows wait for it, so that segments are fewer and larger."""
    note_refusals: float = 1.0
    """Between two writes of the number of refused reports."""
    look_at_origins: float = 2.0
    """Between two looks at the sites that operators have added to collections."""
    post_metrics: float = 1.0
    """Between two posts of this process's metrics, where several serve."""
    advance: float = 2.0
    """Between two looks at the rounds of adaptive plans."""
    touch: float = 60.0
    """Between two looks for batches that another process has left behind."""
    retire: float = 3600.0
    """Between two looks for collections that are past their retention."""
    confirm_drop: float = 3600.0
    """For how long the calendar must agree that a collection is past its retention, before its reports are dropped."""
    sweep: float = 300.0
    """Between two looks for files of segments that no manifest names."""
    confirm_sweep: float = 900.0
    """For how long no manifest must have named a file, before it is removed.

    A commit whose outcome nobody heard may still be taking effect, and a query may be reading a merged segment.
    """
    look_out: float = 30.0
    """Between two looks for what webhooks and gauges tell about collections."""
    deliver: float = 3.0
    """Between two looks for messages to webhooks that are due."""
    damage: float = 300.0
    """Between two readings of all tallies to see whether they are as they were written."""


@dataclass(frozen=True)
class FoldLimits:
    """Size limits of a fold: shards and segments above them are not rewritten any more, and a new one is begun."""

    log_bytes: int = 1 << 22
    """Bytes of a shard with a log of reports."""
    manifest_bytes: int = 1 << 16
    """Bytes of a manifest."""
    segment_rows: int = 1 << 20
    segment_memory: int = 1 << 27
    """Decoded bytes of a segment. These two bound what a fold rewrites beside the new rows."""
