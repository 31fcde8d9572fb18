"""Expensive work of HTTP requests: done elsewhere, and given up when the client leaves."""

import asyncio
from typing import TypeVar

from starlette.types import Receive

from tacit.collector.work import Job

Result = TypeVar("Result")


async def answered(job: Job[Result], receive: Receive) -> Result:
    """The result of a job for a request whose body has been read; given up at its deadline or if the client leaves."""
    done, gone = asyncio.wrap_future(job.future), asyncio.ensure_future(_left(receive))
    try:
        await asyncio.wait({done, gone}, timeout=job.seconds_left, return_when=asyncio.FIRST_COMPLETED)
        if done.done():
            return done.result()
        if gone.done():
            gone.result()
        raise job.late()
    finally:
        gone.cancel()
        if not done.done():
            done.cancel()
            job.give_up()


async def _left(receive: Receive) -> None:
    """Wait until the client has closed the connection."""
    while (await receive())["type"] != "http.disconnect":
        pass
