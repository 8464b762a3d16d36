"""stream: outputs one by one, as the daemon computes them."""

from __future__ import annotations

import asyncio
import os

import numpy as np
import pytest

import cipherd
from fashion import TOLERANCE, Fashion
from test_evaluate import MIX_TOLERANCE


def collect(parts: list[cipherd.OutputPart], item_count: int) -> dict[str, np.ndarray]:
    """The parts put together; each may come once."""
    outputs: dict[str, np.ndarray] = {}
    for part in parts:
        whole = outputs.setdefault(part.output, np.full((item_count, 4), np.nan))
        place = whole[part.first_item : part.first_item + len(part.values)]
        assert np.isnan(place).all()
        place[:] = part.values
    return outputs


def inputs(item_count: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(5)
    return {name: random.uniform(-1, 1, (item_count, 4)) for name in "ab"}


def check(outputs: dict[str, np.ndarray], given: dict[str, np.ndarray]) -> None:
    assert sorted(outputs) == ["product", "sum"]
    np.testing.assert_allclose(outputs["sum"], given["a"] + given["b"], atol=MIX_TOLERANCE)
    np.testing.assert_allclose(outputs["product"], given["a"] * given["b"], atol=MIX_TOLERANCE)


@pytest.mark.parametrize("item_count", [3, 8, 30])
def test_parts_are_those_of_the_whole(mix: cipherd.Session, item_count: int) -> None:
    given = inputs(item_count)
    check(collect(list(mix.stream(given)), item_count), given)


def test_reports_are_there_at_the_end(mix: cipherd.Session) -> None:
    with mix.stream(inputs(9), request_id="r") as stream:
        next(stream)
        with pytest.raises(RuntimeError, match="end"):
            stream.requests
        rest = list(stream)
    assert len(rest) == 3
    assert [one.request_id for one in stream.requests] == ["r.0", "r.1"]
    assert stream.requests[0].received_bytes > 0
    assert list(stream) == []


def test_parts_of_many_requests_come_while_others_run_in_asyncio(mix: cipherd.Session) -> None:
    given = inputs(30)

    async def run() -> list[cipherd.OutputPart]:
        return [part async for part in mix.stream_async(given, in_flight=2)]

    check(collect(asyncio.run(run()), 30), given)


def test_one_item_has_no_axis_of_items(mix: cipherd.Session) -> None:
    (product,) = [
        part for part in mix.stream({"a": np.ones(4), "b": np.ones(4)}) if part.output == "product"
    ]
    assert product.first_item == 0
    np.testing.assert_allclose(product.values, np.ones(4), atol=MIX_TOLERANCE)


def test_a_program_with_one_output_has_one_part_a_request(
    fashion_session: cipherd.Session, fashion: Fashion
) -> None:
    images = fashion.images(2)
    (part,) = fashion_session.stream(images)
    np.testing.assert_allclose(part.values, fashion.logits(images), atol=TOLERANCE)


def test_leaving_the_loop_ends_the_evaluation(mix: cipherd.Session) -> None:
    for _ in mix.stream(inputs(4000), in_flight=1):
        break
    stream = mix.stream(inputs(4000), in_flight=1)
    next(stream)
    stream.close()
    assert list(stream) == []
    # The session is free for others, and its daemon's places are.
    given = inputs(2)
    check(collect(list(mix.stream(given)), 2), given)


def test_errors_come_out_of_the_loop(client: cipherd.Client, mix: cipherd.Session) -> None:
    with pytest.raises(cipherd.InvalidInputError, match="inputs\\['b'\\]"):
        list(mix.stream({"a": np.ones(4), "b": np.ones(5)}))
    with client.session("mix") as session:
        with pytest.raises(cipherd.FailedPreconditionError):
            list(session.stream(inputs(1)))
    with pytest.raises(cipherd.DeadlineExceededError):
        list(mix.stream(inputs(4000), timeout=0.05))


def test_the_task_can_be_cancelled(mix: cipherd.Session) -> None:
    async def run() -> int:
        count = 0

        async def read() -> None:
            nonlocal count
            async for _ in mix.stream_async(inputs(4000), in_flight=1):
                count += 1

        task = asyncio.create_task(read())
        while count == 0:
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return count

    assert 0 < asyncio.run(run()) < 1000


def test_closing_the_session_ends_its_streams(client: cipherd.Client) -> None:
    with client.session("mix") as session:
        session.upload_keys()
        stream = session.stream(inputs(4000), in_flight=1)
        next(stream)
    with pytest.raises(cipherd.CancelledError):
        list(stream)


def test_leaving_an_async_block_ends_the_evaluation(mix: cipherd.Session) -> None:
    async def run() -> None:
        async with mix.stream_async(inputs(4000), in_flight=1) as parts:
            await anext(parts)
        assert [part async for part in parts] == []

    asyncio.run(run())


def test_a_loop_that_is_closed_while_parts_come_does_no_harm(mix: cipherd.Session) -> None:
    async def run() -> cipherd.AsyncOutputStream:
        stream = mix.stream_async(inputs(200), in_flight=2)
        await anext(stream)
        return stream

    stream = asyncio.run(run())
    given = inputs(2)
    check(collect(list(mix.stream(given)), 2), given)
    stream.close()


def test_a_forked_process_leaves_the_stream_to_its_parent(mix: cipherd.Session) -> None:
    class NotHere:
        def cancel(self) -> None:
            os._exit(2)  # would take locks that threads of the parent may have held

    given = inputs(30)
    stream = mix.stream(given, in_flight=1)
    first = next(stream)
    child = os.fork()
    if child == 0:
        stream._cancellation = NotHere()  # type: ignore[assignment]
        try:
            next(stream)
        except cipherd.FailedPreconditionError:
            stream.close()
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    check(collect([first, *stream], 30), given)
