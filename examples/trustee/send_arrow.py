"""Perturb the rows of an Arrow or Parquet file and send the reports: python send_arrow.py FILE ADDRESS OUTBOX.

The file has a column for every question of the collection at ADDRESS. Each row is perturbed on its own, by coins of
the operating system; the values themselves go nowhere. Run it again after a failure: what waits in OUTBOX is sent, and
nothing is counted twice, as long as the file itself is not read twice.
"""

import sys

import pyarrow.dataset as ds

from tacit.client import Trustee


def main(file: str, address: str, outbox: str) -> None:
    trustee = Trustee(address, outbox=outbox)
    names = [question.name for question in trustee.collection.questions]
    total = trustee.flush()  # What an earlier run left behind.
    for batch in ds.dataset(file).to_batches(columns=names):
        total += trustee.add_many(batch.to_pylist())
    total += trustee.flush()
    print(f"{total.sent} batches sent, {total.pending} pending, {total.refused} refused")


if __name__ == "__main__":
    main(*sys.argv[1:])
