"""Write spec/collection.schema.json: the JSON Schema of collection documents and of drafts.

Usage: python tools/make_schema.py
"""

import json
from pathlib import Path

from tacit.wire.schema import collection_schema

TARGET = Path(__file__).resolve().parents[1] / "spec" / "collection.schema.json"


def make() -> str:
    """The file."""
    return json.dumps(collection_schema(), indent=1) + "\n"


if __name__ == "__main__":
    TARGET.write_text(make(), encoding="utf-8")
