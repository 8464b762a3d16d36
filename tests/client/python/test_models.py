"""Models by hand: built, computed in float64, planned, written."""

from __future__ import annotations

import json
import pathlib
import subprocess
import threading
from typing import Any

import numpy as np
import pytest

import cipherd
import cipherd.models
from cipherd.models import Model, Polynomial, fit
from conftest import CIPHERCTL
from test_package import undocumented

rng = np.random.default_rng(1)


def every_operation() -> Model:
    """Two inputs, two outputs, each kind of operation."""
    model = Model("every_operation", description="each kind once")
    image = model.input("image", [2, 6, 6], lower=-1, upper=1)
    vector = model.input("vector", [4])
    a = model.conv2d(
        image, rng.normal(size=(4, 1, 3, 3)) / 3, rng.normal(size=4), pads=(1, 1, 1, 1), groups=2
    )
    a = model.average_pool2d(a, (3, 3), strides=(2, 2), pads=(1, 1, 0, 0))
    a = model.square(model.multiply_constant(a, rng.normal(size=(4, 1, 1))))
    a = model.sum(a, [1, 2])
    b = model.linear(vector, rng.normal(size=(4, 4)) / 2, rng.normal(size=4))
    b = model.polynomial(b, fit(np.tanh, -5, 5, 5), name="tanh")
    product = model.multiply(model.negate(a), b)
    total = model.subtract(model.add(product, a), model.add_constant(b, 0.25))
    model.output("total", total)
    chosen = model.select(model.reshape(b, [2, -1]), [3, 0, 3])
    model.output("chosen", model.polynomial(chosen, Polynomial((0.0, 0.5, 1.0))))
    return model  # fmt: skip


def samples_of_every_operation(count: int) -> dict[str, Any]:
    return {"image": rng.uniform(-1, 1, (count, 2, 6, 6)), "vector": rng.uniform(-1, 1, (count, 4))}


@pytest.fixture(scope="module")
def planned() -> cipherd.models.PlannedProgram:
    return every_operation().plan(samples_of_every_operation(32), max_error=1e-3)


def test_numpy_and_encrypted_evaluation_agree(planned: cipherd.models.PlannedProgram) -> None:
    samples = samples_of_every_operation(20)
    expected = planned.model.evaluate(samples)
    outputs = planned.evaluate(samples)
    assert expected["total"].shape == (20, 4) and expected["chosen"].shape == (20, 3)
    for name in ("total", "chosen"):
        np.testing.assert_allclose(outputs[name], expected[name], atol=2e-3)


def test_what_was_measured_is_stated(planned: cipherd.models.PlannedProgram) -> None:
    assert set(planned.errors) == {"total", "chosen"}
    assert planned.errors["total"].element_count == 32 * 4
    assert max(one.largest for one in planned.errors.values()) == planned.largest_error <= 1e-3
    assert planned.sample_count == 32
    assert planned.measured_seconds > 0 and planned.predicted_seconds > 0
    assert planned.key_bytes > 0 and planned.input_bytes > 0 and planned.output_bytes > 0
    assert planned.constant_bytes > planned.largest_constant_bytes > 0
    assert "relinearization" in planned.required_keys
    assert planned.schedule.count("\n") > 10
    assert "digraph" in planned.graph and planned.summary


def test_threads_take_turns(planned: cipherd.models.PlannedProgram) -> None:
    samples = samples_of_every_operation(4)
    expected = planned.model.evaluate(samples)["total"]
    made: list[Any] = []
    threads = [
        threading.Thread(target=lambda: made.append(planned.evaluate(samples)["total"]))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 3
    for one in made:
        np.testing.assert_allclose(one, expected, atol=2e-3)


def test_cipherctl_plans_a_saved_model_and_shows_a_written_program(
    planned: cipherd.models.PlannedProgram, tmp_path: pathlib.Path
) -> None:
    planned.model.save(tmp_path / "model.json")
    run = subprocess.run(
        [CIPHERCTL, "plan", tmp_path / "model.json", "--max-error", "1e-2", "--encrypted-samples", "2"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert "2 samples" in run.stdout

    directory = tmp_path / "programs" / "every_operation"
    planned.write(directory)
    explained = subprocess.run([CIPHERCTL, "explain", directory], capture_output=True, text=True)
    assert explained.returncode == 0, explained.stderr
    assert "chosen" in explained.stdout
    with pytest.raises(cipherd.AlreadyExistsError):
        planned.write(directory)
    with pytest.raises(cipherd.InvalidInputError):
        planned.write(tmp_path / "programs" / "another_name")


def test_cipherctl_refuses_a_place_to_write_before_it_plans(tmp_path: pathlib.Path) -> None:
    model = Model("m")
    model.output("y", model.square(model.input("x", [2], lower=-1, upper=1)))
    model.save(tmp_path / "model.json")
    (tmp_path / "m").mkdir()
    for place, refusal in (("other", "expected a directory called 'm'"), ("m", "expected nothing of that name")):
        run = subprocess.run(
            [CIPHERCTL, "plan", tmp_path / "model.json", "--output", tmp_path / place],
            capture_output=True, text=True,
        )  # fmt: skip
        assert run.returncode == 1
        assert refusal in run.stderr and run.stdout == ""


def test_json_has_the_constants_or_the_name_of_their_file() -> None:
    model = Model("m")
    x = model.input("x", [2])
    model.output("y", model.select(model.linear(x, [[1, 2], [3, 4]], name="w"), [1], name="s"))
    message = json.loads(model.to_json())
    assert message["constants"] == [
        {"name": "w.weight", "shape": [2, 2], "values": [1, 2, 3, 4]},
        {"name": "s.indices", "shape": [1], "integers": [1]},
    ]
    assert "constants" not in json.loads(model.to_json(constants_file="c.safetensors"))


@pytest.mark.parametrize("degree", [3, 7, 15])
def test_fits_are_near_the_best_and_better_where_numbers_are(degree: int) -> None:
    evenly = fit(np.tanh, -6, 6, degree)
    seen = rng.normal(size=5000)
    weighted = fit(np.tanh, -6, 6, degree, density=seen)

    def error_of(polynomial: Polynomial) -> float:
        return float(np.square(polynomial(seen) - np.tanh(seen)).mean())

    assert error_of(weighted) < error_of(evenly)
    interpolated = np.polynomial.chebyshev.Chebyshev.interpolate(np.tanh, degree, [-6, 6])
    x = np.linspace(-6, 6, 5001)
    assert evenly.largest_error(np.tanh) <= 1.5 * np.abs(interpolated(x) - np.tanh(x)).max()


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda m, x: m.linear(x, np.ones((2, 3))), r"weight: expected shape \[out, 4\] for 'x' of shape \[4\]"),
        (lambda m, x: m.add(x, m.linear(x, np.ones((3, 4)))), "expected two of one shape"),
        (lambda m, x: m.add_constant(x, np.ones(3)), r"of shape \[3\] does not broadcast to 'x'"),
        (lambda m, x: m.reshape(x, [3, -1]), "does not hold the 4 numbers"),
        (lambda m, x: m.conv2d(x, np.ones((1, 1, 3, 3))), r"expected an image \[channels, height, width\]"),
        (lambda m, x: m.square(x, name="x"), "another input or operation has this name"),
        (lambda m, x: m.square(Model("n").input("z", [4])), "'z' is not an edge of this model"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_at_once(wrong: Any, says: str) -> None:
    model = Model("m")
    with pytest.raises(cipherd.InvalidInputError, match=says):
        wrong(model, model.input("x", [4]))


def test_what_cannot_be_planned_says_why() -> None:
    model = Model("deep")
    edge = x = model.input("x", [2])
    with pytest.raises(cipherd.InvalidInputError, match="operations: expected at least one"):
        model.plan()
    for _ in range(20):
        edge = model.square(edge)
    model.output("y", edge)
    with pytest.raises(
        cipherd.LimitExceededError, match="ask for less precision, or make the circuit shallower"
    ):
        model.plan(np.zeros((1, 2)), max_log_n=13)
    with pytest.raises(
        cipherd.InvalidInputError, match=r"samples\['x'\]: expected shape \['n', 2\], got \[3, 5\]"
    ):
        model.plan(np.zeros((3, 5)))
    with pytest.raises(cipherd.InvalidInputError, match="abacus"):
        model.plan(np.zeros((1, 2)), device="abacus")
    assert x.element_count == 2


def test_names_are_made_lawful_and_unique() -> None:
    model = Model("m")
    x = model.input(model.unused_name("/conv 1/Conv_output_0"), [1])
    assert x.name == "conv.1.Conv_output_0"
    assert model.unused_name("/conv 1/Conv_output_0") == "conv.1.Conv_output_0.2"
    long = model.input(model.unused_name("a" * 60), [1])
    assert len(long.name) == 40
    assert len(model.unused_name("a" * 60)) <= 40


def test_everything_public_is_documented() -> None:
    assert undocumented(cipherd.models) == []
