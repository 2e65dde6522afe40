"""Whose texts are worked on next."""

import asyncio
import io
import threading

import pytest

from keytokens.app.serve.turns import Turns, portions

from .conftest import in_a_loop


async def settled():
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.mark.parametrize("texts", [[], [""], ["a"] * 5, ["x" * 6_000] * 5, ["", "x" * 30_000, "", "y", "z" * 9_999]])
def test_portions_are_the_texts(texts):
    cut = list(portions(texts))
    assert [text for portion in cut for text in portion] == texts
    assert all(sum(map(len, portion)) <= 10_000 or len([text for text in portion if text]) == 1 for portion in cut)
    assert cut


class Held:
    """A job that waits to be let go on, one portion after the other."""

    def __init__(self):
        self.done = []
        self.begun = threading.Semaphore(0)
        self.going = threading.Semaphore(0)

    def __call__(self, portion):
        self.begun.release()
        assert self.going.acquire(timeout=20)
        self.done.append(portion[0][0])
        return len(portion)

    async def until_begun(self):
        assert await asyncio.to_thread(self.begun.acquire, timeout=20)


def test_a_short_request_passes_long_ones():
    async def story():
        turns, job = Turns(1), Held()
        long = [asyncio.create_task(turns.each([name * 9_000] * 3, job)) for name in "ab"]
        await job.until_begun()
        short = asyncio.create_task(turns.each(["c"], job))
        await settled()
        for _ in range(7):
            job.going.release()
        assert await asyncio.wait_for(asyncio.gather(*long, short), 20) == [[1, 1, 1], [1, 1, 1], [1]]
        turns.close()
        return job.done

    done = in_a_loop(story())
    assert done[:2] == ["a", "c"], "the first was already at work"
    assert sorted(done) == [*"aaabbbc"]


def test_who_leaves_takes_no_turn_and_keeps_no_thread():
    async def story():
        turns, job = Turns(1), Held()
        first, second, third = (asyncio.create_task(turns.each([name * 9_000] * 3, job)) for name in "abc")
        await job.until_begun()
        second.cancel()  # while it waits
        first.cancel()  # while a thread works for it
        for _ in range(4):
            job.going.release()
        assert await asyncio.wait_for(third, 20) == [1, 1, 1]
        left = await asyncio.gather(first, second, return_exceptions=True)
        assert [type(error) for error in left] == [asyncio.CancelledError] * 2
        turns.close()
        return job.done

    assert in_a_loop(story()) == [*"accc"]


def test_who_leaves_in_the_moment_of_its_turn_gives_it_on():
    async def story():
        turns, job = Turns(1), Held()
        turns._free = 0  # the one thread is at work for somebody else
        second, third = (asyncio.create_task(turns.each([name], job)) for name in "bc")
        await settled()
        turns._leave()
        second.cancel()
        job.going.release()
        assert await asyncio.wait_for(third, 20) == [1]
        with pytest.raises(asyncio.CancelledError):
            await second
        await settled()
        assert turns._free == 1
        turns.close()
        return job.done

    assert in_a_loop(story()) == ["c"]


def test_a_job_that_fails_gives_its_thread_back():
    def broken(portion):
        raise LookupError(portion[0])

    async def story():
        turns = Turns(1)
        for _ in range(3):
            with pytest.raises(LookupError, match="a"):
                await asyncio.wait_for(turns.each(["a"], broken), 20)
        turns.close()

    in_a_loop(story())


def test_a_file_that_nobody_waits_for_is_closed():
    made = []

    async def story():
        turns, job = Turns(1), Held()

        def packed(_):
            job(["a"])
            made.append(io.BytesIO())
            return made[0]

        task = asyncio.create_task(turns.each([], packed))
        await job.until_begun()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        job.going.release()
        assert await turns.each(["b"], len) == [1], "the thread is free again"
        turns.close()

    in_a_loop(story())
    assert made[0].closed
