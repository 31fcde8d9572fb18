"""Run by tests in a process of its own: separate executors, one of which is killed, and a task that runs twice.

python cluster_job.py MASTER FOLDER      prints a JSON object of what was counted, and whether it was the same bits
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from tests.unit.distributed.crowds import reports_on, settings, write_folder

from tacit.distributed.spark import tally
from tacit.distributed.spark.counting import tally_read
from tacit.distributed.spark.lakes import read_lake
from tacit.distributed.spark.readers import Read
from tacit.lake.about import About
from tacit.oracles.local_hash import OLH
from tacit.simulate.coins import SimulationCoins
from tacit.testing.examples import example
from tacit.wire.tallies import dump_tally

KINDS = ("oue", "olh", "one_of", "all_of")
LOOKS = 600
"""A task that waits for another one looks so often, a tenth of a second apart; then it goes on, and the test fails."""


def unharmed(folder: str, batches: Iterator[Any]) -> Iterator[Any]:
    del folder
    yield from batches


def kill_once(folder: str, batches: Iterator[Any]) -> Iterator[Any]:
    """Kill the executor of whichever task comes first, in the middle of its partition."""
    for batch in batches:
        yield batch
        try:
            (Path(folder) / "killed").touch(exist_ok=False)
        except FileExistsError:
            continue
        # A worker is forked by a daemon, which the executor started.
        executor = int(Path(f"/proc/{os.getppid()}/stat").read_text().split()[3])
        os.kill(executor, signal.SIGKILL)


def wait_for_twin(folder: str, batches: Iterator[Any]) -> Iterator[Any]:
    """Hold the first attempt of one partition up until Spark has started a second one beside it."""
    from pyspark import TaskContext

    context: Any = TaskContext.get()
    twin = Path(folder) / "twin"
    if context.partitionId() == 0 and context.attemptNumber() == 0:
        for _ in range(LOOKS):
            if twin.exists():
                break
            time.sleep(0.1)
    elif context.partitionId() == 0:
        twin.touch()
    yield from batches


def counted(spark: Any, folder: Path, harm: Callable[..., Iterator[Any]]) -> bool:
    """Whether reports are counted to the same bits while their tasks are harmed."""
    mechanism = OLH(size=64, epsilon="1")
    reports = mechanism.privatize(np.arange(4000) % 64, SimulationCoins(1))
    lake = write_folder(folder / harm.__name__, About(mechanism), reports, files=4)
    # One partition per file, so that there are others to compare a slow one with.
    frames = [spark.read.parquet(str(path)) for path in sorted(lake.glob("*.parquet"))]
    whole = frames[0].union(frames[1]).union(frames[2]).union(frames[3])
    harmed = whole.mapInArrow(partial(harm, str(folder)), whole.schema)
    return dump_tally(tally(harmed, mechanism)) == dump_tally(mechanism.tally(reports))


def harmed_files(harm: Callable[..., Iterator[Any]], folder: str, read: Read, batches: Iterator[Any]) -> Iterator[Any]:
    yield from harm(folder, iter(read(batches)))


def counted_by_readers(spark: Any, folder: Path, harm: Callable[..., Iterator[Any]]) -> bool:
    """The same for files that executors open, whose few tallies the driver adds itself."""
    mechanism = OLH(size=64, epsilon="1")
    reports = mechanism.privatize(np.arange(4000) % 64, SimulationCoins(1))
    folder.mkdir(exist_ok=True)
    found = read_lake(spark, [str(write_folder(folder / harm.__name__, About(mechanism), reports, files=4))])
    assert found.reader is not None
    read, frame = partial(harmed_files, harm, str(folder), found.reader), found.reader.frame(spark)
    told = tally_read(frame, mechanism, read, found.reader.partitions)
    return dump_tally(told) == dump_tally(mechanism.tally(reports))


def kinds(spark: Any, folder: Path) -> dict[str, bool]:
    """Whether some kinds are counted to the same bits, with weights."""
    found: dict[str, bool] = {}
    for kind in KINDS:
        mechanism = example(kind, "1")
        reports, weights = reports_on(mechanism, 200), np.arange(200) - 50
        lake = write_folder(folder / kind, About(mechanism), reports, weights)
        same = dump_tally(tally(spark.read.parquet(str(lake)), mechanism))
        found[kind] = same == dump_tally(mechanism.tally(reports, weights))
    return found


@contextmanager
def cluster(folder: Path) -> Generator[str]:
    """A master and two workers, each with an address of its own: Spark starts no second attempt on the same host."""
    import pyspark

    home, port = Path(pyspark.__file__).parent, _free_port()
    master = f"spark://127.0.0.1:{port}"
    node = "org.apache.spark.deploy"
    words = {"127.0.0.1": [f"{node}.master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]}
    for host in ("127.0.0.2", "127.0.0.3"):
        work = ["--work-dir", str(folder / host), "--cores", "1", "--memory", "1g", "--webui-port", "0"]
        words[host] = [f"{node}.worker.Worker", "--host", host, *work, master]
    with ExitStack() as stack:
        for host, command in words.items():
            environ = os.environ | {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": host, "SPARK_DAEMON_MEMORY": "256m"}
            log = stack.enter_context((folder / f"{host}.log").open("wb"))
            started = subprocess.Popen([home / "bin" / "spark-class", *command], env=environ, stdout=log, stderr=log)
            stack.callback(started.wait)
            stack.callback(started.terminate)
        yield master


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


def main(folder: Path) -> None:
    """Count on a cluster, harmed and unharmed."""
    warnings.simplefilter("ignore")
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    from pyspark.sql import SparkSession

    speculation = {"": "true", ".interval": "100ms", ".quantile": "0.5", ".multiplier": "1.1"}
    more = {f"spark.speculation{name}": value for name, value in speculation.items()}
    # Otherwise a task counts as slow by the rows that it has read, and this one has read all of its few.
    more |= {"spark.speculation.efficiency.enabled": "false", "spark.executor.memory": "512m"}
    with cluster(folder) as master:
        spark = SparkSession.builder.master(master).config(map=settings(folder, **more)).getOrCreate()
        spark.sparkContext.setLogLevel("OFF")
        files = folder / "files"
        told = {
            "kinds": kinds(spark, folder),
            "twin": counted(spark, folder, wait_for_twin) and (folder / "twin").exists(),
            "killed": counted(spark, folder, kill_once) and (folder / "killed").exists(),
            "unharmed": counted(spark, folder, unharmed),
            "files twin": counted_by_readers(spark, files, wait_for_twin) and (files / "twin").exists(),
            "files killed": counted_by_readers(spark, files, kill_once) and (files / "killed").exists(),
        }
        spark.stop()
    print(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
