"""A crowd with habits that go together, the draft that asks for them, and how an analyst asks."""

from typing import Any

import numpy as np
import numpy.typing as npt
from tests.service.plain import Client, draft

I64 = npt.NDArray[np.int64]


def asked(name: str, **domain: Any) -> dict[str, Any]:
    return {"name": name, "text": f"{name}?", "domain": domain}


SMOKER = asked("smoker", kind="booleans")
AGE = asked("age_group", kind="ordered", labels=["young", "middle", "old"])
PET = asked("pet", kind="categories", labels=["cat", "dog", "fish"])
SPORT = asked("sport", kind="booleans")
QUESTIONS = [SMOKER, AGE, PET, SPORT]
NAMES = ("smoker", "age_group", "pet", "sport")
SHAPE = (2, 3, 3, 2)
HABITS = draft(title="Habits", questions=QUESTIONS, policy="joint", epsilon="2", respondents=30_000)


def crowd(n: int = 30_000, seed: int = 1) -> I64:
    """Smoking rises with age and goes with less sport; pets have nothing to do with anything."""
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 3, n)
    smoker = rng.random(n) < 0.15 + 0.2 * age
    sport = rng.random(n) < 0.5 - 0.2 * smoker
    return np.stack([smoker, age, rng.choice(3, n, p=[0.5, 0.3, 0.2]), sport], axis=1).astype(np.int64)


def truth(records: I64, *names: str) -> npt.NDArray[np.float64]:
    """The true shares of all combinations."""
    places = [NAMES.index(name) for name in names]
    shape = [SHAPE[place] for place in places]
    flat = np.ravel_multi_index(tuple(records[:, place] for place in places), shape)
    return np.bincount(flat, minlength=int(np.prod(shape))) / len(records)


def ask(client: Client, collection: str, query: str, **given: Any) -> Any:
    path = f"/api/v1/collections/{collection}/joint/{query}"
    return client.http.get(path, params=given, headers={"Authorization": f"Bearer {client.token}"})
