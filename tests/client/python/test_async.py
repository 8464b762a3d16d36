"""evaluate_async: any number at once, and no thread for each."""

from __future__ import annotations

import asyncio
import threading

import numpy as np
import pytest

import cipherd
from fashion import TOLERANCE, Fashion
from test_evaluate import MIX_TOLERANCE


def test_results_are_those_of_the_model(fashion_session: cipherd.Session, fashion: Fashion) -> None:
    images = fashion.images(9)
    logits = asyncio.run(fashion_session.evaluate_async(images))
    np.testing.assert_allclose(logits, fashion.logits(images), atol=TOLERANCE)


def test_many_run_at_once_on_no_thread_of_their_own(mix: cipherd.Session) -> None:
    async def evaluate(number: int) -> None:
        given = np.full((9, 4), number / 64)
        sums = (await mix.evaluate_async({"a": given, "b": given}, in_flight=1))["sum"]
        np.testing.assert_allclose(sums, 2 * given, atol=MIX_TOLERANCE)

    async def evaluate_all() -> int:
        tasks = [asyncio.create_task(evaluate(number)) for number in range(24)]
        await asyncio.sleep(0)
        threads = threading.active_count()
        await asyncio.gather(*tasks)
        return threads

    assert asyncio.run(evaluate_all()) == 1


def test_details_and_names_are_as_of_evaluate(mix: cipherd.Session) -> None:
    ones = np.ones((9, 4))
    result = asyncio.run(mix.evaluate_async({"a": ones, "b": ones}, request_id="r", details=True))
    assert [one.request_id for one in result.requests] == ["r.0", "r.1"]
    np.testing.assert_allclose(result.outputs["product"], ones, atol=MIX_TOLERANCE)


def test_the_loop_runs_meanwhile(mix: cipherd.Session) -> None:
    many = np.zeros((400, 4))

    async def count_turns() -> int:
        task = asyncio.create_task(mix.evaluate_async({"a": many, "b": many}))
        turns = 0
        while not task.done():
            turns += 1
            await asyncio.sleep(0)
        await task
        return turns

    assert asyncio.run(count_turns()) > 50


def test_errors_are_typed(client: cipherd.Client, mix: cipherd.Session) -> None:
    with client.session("mix") as session:
        with pytest.raises(cipherd.FailedPreconditionError):
            asyncio.run(session.evaluate_async({"a": np.zeros(4), "b": np.zeros(4)}))
    with pytest.raises(cipherd.InvalidInputError):
        asyncio.run(mix.evaluate_async({"a": np.zeros(4)}))
    mix.drop_keys()
    with client.session("mix", key_set_id="0" * 64) as session:
        with pytest.raises(cipherd.UnknownKeySetError):
            asyncio.run(session.evaluate_async({"a": np.zeros(4), "b": np.zeros(4)}))


def test_cancelling_the_task_ends_the_requests(mix: cipherd.Session) -> None:
    many = np.zeros((1_000_000, 4))

    async def cancel() -> None:
        task = asyncio.create_task(mix.evaluate_async({"a": many, "b": many}))
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    # Nothing of it is left in the way: closing waits for what is under way.
    mix.close()


def test_wait_for_ends_it_too(mix: cipherd.Session) -> None:
    many = np.zeros((1_000_000, 4))
    evaluation = mix.evaluate_async({"a": many, "b": many})

    async def wait() -> None:
        await asyncio.wait_for(evaluation, timeout=0.1)

    with pytest.raises(asyncio.TimeoutError):
        asyncio.run(wait())
    mix.close()


def test_a_loop_that_has_closed_is_no_trouble(mix: cipherd.Session) -> None:
    many = np.zeros((400, 4))
    loop = asyncio.new_event_loop()
    task = loop.create_task(mix.evaluate_async({"a": many, "b": many}))
    loop.run_until_complete(asyncio.sleep(0.01))
    task._log_destroy_pending = False  # type: ignore[attr-defined]
    loop.close()
    mix.close()
