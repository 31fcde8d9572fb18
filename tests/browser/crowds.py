"""Crowds of made-up respondents for tests of the pages, whose reports go through the same route as everybody's."""

from typing import Any

import numpy as np

from tacit.core.compose import OneOf
from tacit.simulate.coins import SimulationCoins
from tacit.wire.batch import MEDIA_TYPE, Batch, Block, encode_batch, new_batch_id

ITEMS = [f"item {i:02d}" for i in range(24)]
BASKET: dict[str, Any] = {
    "name": "basket",
    "text": {"en": "What did you buy?", "de": "Was kauften Sie?", "fr": "Vos achats ?", "es": "¿Qué compró?"},
    "domain": {"kind": "items", "labels": ITEMS, "most": 4},
    "task": "items",
}
TITLES = {"en": "Baskets", "de": "Körbe", "fr": "Paniers", "es": "Cestas"}
BASKETS: dict[str, Any] = {
    "title": TITLES, "about": TITLES, "questions": [BASKET], "epsilon": "4", "k": 3, "respondents": 60_000,
    "minimum_cohort": 10,
}  # fmt: skip


def baskets(n: int, seed: int) -> list[tuple[int, ...]]:
    """Six in ten hold items 0 and 1 together, four in ten hold item 2, and some the others."""
    rng = np.random.default_rng(seed)
    held = rng.random((n, len(ITEMS))) < 0.02
    held[:, 0] = held[:, 1] = rng.random(n) < 0.6
    held[:, 2] = rng.random(n) < 0.4
    return [tuple(np.flatnonzero(row).tolist()) for row in held]


def send_crowd(context: Any, site: Any, collection: str, values: Any, seed: int = 1) -> None:
    """Perturb a whole crowd and post its reports as one batch."""
    mechanism = site.collector.find(collection).mechanism
    reports = mechanism.privatize(values, SimulationCoins(seed))
    if isinstance(mechanism, OneOf):
        chosen = {i: reports["payload"][reports["member"] == i] for i in np.unique(reports["member"]).tolist()}
        blocks = [Block(member, len(rows), rows.tobytes()) for member, rows in chosen.items()]
    else:
        blocks = [Block(0, len(reports), reports.tobytes())]
    body = encode_batch(Batch(collection, new_batch_id(), tuple(blocks)))
    reply = context.request.post(f"{site.url}/c/{collection}/reports", data=body, headers={"Content-Type": MEDIA_TYPE})
    assert reply.status == 201, reply.text()


def run_plan(context: Any, site: Any, first: str, n: int) -> None:
    """Answer every round of a plan until it has found what it looks for."""
    current, seed = first, 0
    while current:
        send_crowd(context, site, current, baskets(n, seed), seed)
        state = site.collector.advance(first)
        current, seed = "" if state["finished"] else state["current"], seed + 1
