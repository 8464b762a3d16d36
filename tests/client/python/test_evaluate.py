"""Arrays in, decrypted arrays out."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import cipherd
from conftest import Daemon
from fashion import TOLERANCE, Fashion

# Of the small program: fresh errors of about 2^10 at scale 2^40, and products of numbers below 1.
MIX_TOLERANCE = 1e-5


@pytest.mark.parametrize("count", [1, 8, 19])
def test_logits_are_those_of_the_model(
    fashion_session: cipherd.Session, fashion: Fashion, count: int
) -> None:
    images = fashion.images(count)
    logits = fashion_session.evaluate(images)
    assert logits.shape == (count, 10)
    assert logits.dtype == np.float64
    np.testing.assert_allclose(logits, fashion.logits(images), atol=TOLERANCE)


def test_one_item_needs_no_axis(fashion_session: cipherd.Session, fashion: Fashion) -> None:
    image = fashion.images(1)[0]
    logits = fashion_session.evaluate(image)
    assert logits.shape == (10,)
    np.testing.assert_allclose(logits, fashion.logits(image[None])[0], atol=TOLERANCE)


def test_many_requests_keep_their_order(mix: cipherd.Session, random: np.random.Generator) -> None:
    a, b = random.uniform(-1, 1, (2, 203, 4))
    for in_flight in (1, 4, 16):
        outputs = mix.evaluate({"a": a, "b": b}, in_flight=in_flight)
        assert set(outputs) == {"sum", "product"}
        np.testing.assert_allclose(outputs["sum"], a + b, atol=MIX_TOLERANCE)
        np.testing.assert_allclose(outputs["product"], a * b, atol=MIX_TOLERANCE)


@pytest.mark.parametrize(
    "make",
    [
        lambda a: a.astype(np.float32),
        lambda a: np.rint(a).astype(np.int64),
        lambda a: np.rint(a).astype(np.uint8),
        lambda a: a > 0.5,
        lambda a: np.asfortranarray(a),
        lambda a: np.repeat(a, 2, axis=1)[:, ::2],
        lambda a: a[::-1],
        lambda a: a.astype(">f8"),
        lambda a: a.tolist(),
    ],
    ids=[
        "float32",
        "int64",
        "uint8",
        "bool",
        "fortran",
        "strided",
        "reversed",
        "big-endian",
        "list",
    ],
)
def test_dtype_and_layout_do_not_matter(
    mix: cipherd.Session, random: np.random.Generator, make: Any
) -> None:
    given = make(random.uniform(0, 1, (11, 4)))
    zeros = np.zeros((11, 4))
    expected = np.asarray(given, dtype=np.float64)
    outputs = mix.evaluate({"a": given, "b": zeros})
    np.testing.assert_allclose(outputs["sum"], expected, atol=MIX_TOLERANCE)


def test_inputs_are_left_alone(mix: cipherd.Session) -> None:
    a = np.ones((3, 4))
    a.setflags(write=False)
    mix.evaluate({"a": a, "b": a})
    assert (a == 1).all()


def test_details_say_what_each_request_took(mix: cipherd.Session, daemon: Daemon) -> None:
    ones = np.ones((20, 4))
    result = mix.evaluate({"a": ones, "b": ones}, request_id="python-details", details=True)
    np.testing.assert_allclose(result.outputs["sum"], 2 * ones, atol=MIX_TOLERANCE)
    assert [one.request_id for one in result.requests] == [f"python-details.{k}" for k in range(3)]
    for one in result.requests:
        assert one.stage_seconds["replay"] > 0
        assert set(one.stage_seconds) == {
            "decode",
            "queue",
            "batch_wait",
            "device_wait",
            "transfer_in",
            "replay",
            "transfer_out",
            "encode",
        }
        assert one.sent_bytes >= mix.program.input_bytes
        assert one.received_bytes >= mix.program.output_bytes
        assert one.request_id in daemon.log.read_text()


@pytest.mark.parametrize(
    ("inputs", "path", "message"),
    [
        ({"a": np.zeros((2, 4))}, "inputs['b']", "missing"),
        ({"a": np.zeros((2, 4)), "b": np.zeros((2, 4)), "c": 1}, "inputs['c']", "no such input"),
        ({"a": np.zeros((2, 4)), "b": np.zeros((3, 4))}, "inputs['b']", "expected 2 items"),
        (
            {"a": np.zeros((2, 5)), "b": np.zeros((2, 4))},
            "inputs['a']",
            r"expected shape \[n, 4\].*got \[2, 5\]",
        ),
        ({"a": np.zeros((0, 4)), "b": np.zeros((0, 4))}, "inputs['a']", r"n >= 1.*got \[0, 4\]"),
        ({"a": np.zeros((2, 2, 4)), "b": np.zeros((2, 4))}, "inputs['a']", r"got \[2, 2, 4\]"),
        ({"a": 1.0, "b": np.zeros(4)}, "inputs['a']", r"got \[\]"),
        (
            {"a": np.zeros((2, 4), complex), "b": np.zeros((2, 4))},
            "inputs['a']",
            "real numbers, got dtype complex128",
        ),
        ({"a": ["x"] * 4, "b": np.zeros(4)}, "inputs['a']", r"dtype <U1; .*\.astype\(float\)"),
        (
            {"a": [[1.0] * 4, [2.0]], "b": np.zeros((2, 4))},
            "inputs['a']",
            "rows of different lengths",
        ),
        (np.zeros((2, 4)), "inputs", "2 inputs and 2 outputs: expected a dict"),
    ],
)
def test_wrong_inputs_are_named(mix: cipherd.Session, inputs: Any, path: str, message: str) -> None:
    with pytest.raises(cipherd.InvalidInputError, match=message) as raised:
        mix.evaluate(inputs)
    assert raised.value.path == path
    assert raised.value.code == "INVALID_ARGUMENT"
    assert isinstance(raised.value, ValueError)


def test_numbers_that_are_none_are_named_by_their_place(mix: cipherd.Session) -> None:
    a = np.zeros((12, 4))
    a[9, 3] = np.nan
    with pytest.raises(cipherd.InvalidInputError, match="expected a finite number") as raised:
        mix.evaluate({"a": a, "b": np.zeros((12, 4))})
    assert raised.value.path == "inputs['a'][9][3]"


@pytest.mark.parametrize("timeout", [0, -1.0, float("nan")])
def test_odd_timeouts_are_refused(mix: cipherd.Session, timeout: float) -> None:
    with pytest.raises(cipherd.InvalidInputError) as raised:
        mix.evaluate({"a": np.zeros(4), "b": np.zeros(4)}, timeout=timeout)
    assert raised.value.path == "timeout"


def test_the_timeout_is_that_of_the_whole(mix: cipherd.Session) -> None:
    many = np.zeros((1_000_000, 4))
    with pytest.raises(cipherd.DeadlineExceededError) as raised:
        mix.evaluate({"a": many, "b": many}, timeout=0.3)
    assert isinstance(raised.value, TimeoutError)


def test_threads_evaluate_at_once(mix: cipherd.Session) -> None:
    failures: list[BaseException] = []

    def evaluate(number: int) -> None:
        try:
            given = np.full((9, 4), number / 8)
            sums = mix.evaluate({"a": given, "b": given})["sum"]
            np.testing.assert_allclose(sums, 2 * given, atol=MIX_TOLERANCE)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=evaluate, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_keys_must_be_there(client: cipherd.Client) -> None:
    with client.session("mix") as session:
        with pytest.raises(cipherd.FailedPreconditionError, match="upload the keys"):
            session.evaluate({"a": np.zeros(4), "b": np.zeros(4)})
