"""CPU time by what it was spent on."""

from threading import Thread
from time import thread_time

from tacit.hosting.cpu_meter import CpuMeter


def work(seconds: float) -> None:
    end = thread_time() + seconds
    while thread_time() < end:
        pass


def test_nested_parts_are_counted_once_and_the_rest_is_other() -> None:
    meter = CpuMeter()
    with meter.spent_on("outer"):
        work(0.01)
        with meter.spent_on("inner"):
            work(0.05)
        with meter.spent_on("inner"):
            work(0.05)
    spent = meter.seconds()
    # Bounds on CPU time of this thread: what a busy machine adds is waiting, which is not counted.
    assert 0.1 <= spent["inner"] < 0.2 and 0.01 <= spent["outer"] < 0.05
    assert spent["other"] > 0


def test_threads_do_not_disturb_each_other_and_an_error_is_counted_too() -> None:
    meter = CpuMeter()

    def run() -> None:
        try:
            with meter.spent_on("part"):
                work(0.02)
                raise ValueError
        except ValueError:
            pass

    threads = [Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 0.08 <= meter.seconds()["part"] < 0.3
