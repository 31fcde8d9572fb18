"""Awaiting a job of the thread pool from an ASGI request, cancelling it when the client disconnects."""

import asyncio
from typing import TypeVar

from starlette.types import Receive

from tacit.collector.work import Job

Result = TypeVar("Result")


async def answered(job: Job[Result], receive: Receive) -> Result:
    """The result of a job; it is cancelled at its deadline, or if the client disconnects.

    The request's body must have been read: `receive` then waits for the disconnect.
    """
    done, gone = asyncio.wrap_future(job.future), asyncio.ensure_future(_left(receive))
    try:
        await asyncio.wait({done, gone}, timeout=job.seconds_left, return_when=asyncio.FIRST_COMPLETED)
        if done.done():
            return done.result()
        # Raises if `receive` failed; a plain disconnect falls through, and nobody will see the problem.
        if gone.done():
            gone.result()
        raise job.late()
    finally:
        # Runs when the server cancels this task too, so that no job survives its request.
        gone.cancel()
        if not done.done():
            done.cancel()
            job.give_up()


async def _left(receive: Receive) -> None:
    """Return when the client has disconnected."""
    while (await receive())["type"] != "http.disconnect":
        pass
