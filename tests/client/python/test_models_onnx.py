"""ONNX graphs made here: imported, planned, evaluated encrypted, against onnx's own evaluator."""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnx.helper as oh
import onnx.numpy_helper
import pytest
from onnx.reference import ReferenceEvaluator

import cipherd
from cipherd.models import UnsupportedModelError, from_onnx

MAX_ERROR = 1e-3
Feeds = npt.NDArray[np.float32]
rng = np.random.default_rng(1)


def graph(
    nodes: Sequence[Any],
    shape: Sequence[int | str],
    constants: dict[str, Any],
    *,
    rank: int = 2,
    opset: int = 17,
) -> onnx.ModelProto:
    """A model of one input, x, and one output, y, which has so many axes."""
    made = oh.make_graph(
        nodes,
        "tested graph",
        [oh.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)],
        [oh.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [f"d{k}" for k in range(rank)])],
        [
            onnx.numpy_helper.from_array(
                np.asarray(value, np.float32) if np.asarray(value).dtype.kind == "f" else np.asarray(value, np.int64),
                name,
            )
            for name, value in constants.items()
        ],
    )  # fmt: skip
    model = oh.make_model(made, opset_imports=[oh.make_opsetid("", opset)], ir_version=8)
    onnx.checker.check_model(model)
    return model


def reference(proto: Any, samples: Feeds) -> npt.NDArray[Any]:
    """The first output by onnx's own evaluator."""
    outputs: Any = ReferenceEvaluator(proto).run(None, {"x": samples})
    return np.asarray(outputs[0])


def numbers(*shape: int) -> Any:
    """As trained weights are: the smaller, the more of them are summed."""
    return rng.normal(size=shape) / np.sqrt(max(1, int(np.prod(shape[1:]))))


def gemm_mlp() -> tuple[onnx.ModelProto, Feeds]:
    nodes = [
        oh.make_node("Gemm", ["x", "w1", "b1"], ["h1"], transB=1),
        oh.make_node("Relu", ["h1"], ["a1"], name="/act/Relu"),
        oh.make_node("Dropout", ["a1"], ["d1"]),
        oh.make_node("Gemm", ["d1", "w2", "b2"], ["y"], alpha=0.5, beta=2.0),
    ]
    constants = {"w1": numbers(8, 12), "b1": numbers(8), "w2": numbers(8, 3), "b2": numbers(1, 3)}
    return graph(nodes, ["N", 12], constants), rng.normal(size=(64, 12)).astype(np.float32)


def conv_square() -> tuple[onnx.ModelProto, Feeds]:
    nodes = [
        oh.make_node("Conv", ["x", "k", "kb"], ["c"], strides=[2, 2], pads=[1, 1, 1, 1]),
        oh.make_node("Mul", ["c", "c"], ["s"]),
        oh.make_node("Flatten", ["s"], ["f"]),
        oh.make_node("MatMul", ["f", "w"], ["y"]),
    ]
    constants = {"k": numbers(3, 1, 3, 3), "kb": numbers(3), "w": numbers(48, 10)}
    return graph(nodes, ["N", 1, 8, 8], constants), rng.uniform(size=(40, 1, 8, 8)).astype(
        np.float32
    )


def conv_norm_pool() -> tuple[onnx.ModelProto, Feeds]:
    nodes = [
        oh.make_node("Conv", ["x", "k"], ["c"], auto_pad="SAME_UPPER", group=2),
        oh.make_node("BatchNormalization", ["c", "g", "b", "m", "v"], ["n"]),
        oh.make_node("Relu", ["n"], ["r"]),
        oh.make_node("GlobalAveragePool", ["r"], ["p"]),
        oh.make_node("Squeeze", ["p", "axes"], ["q"]),
        oh.make_node("Gemm", ["q", "w"], ["y"]),
    ]
    constants = {
        "k": numbers(4, 1, 3, 3), "g": rng.uniform(0.5, 1.5, 4), "b": numbers(4), "m": numbers(4),
        "v": rng.uniform(0.5, 2, 4), "w": numbers(4, 3), "axes": [2, 3],
    }  # fmt: skip
    return graph(nodes, ["N", 2, 6, 6], constants), rng.normal(size=(40, 2, 6, 6)).astype(
        np.float32
    )


def mixed() -> tuple[onnx.ModelProto, Feeds]:
    """As exporters write: shapes computed in the graph, constants by nodes, broadcasts both ways."""
    nodes = [
        oh.make_node(
            "Constant", [], ["two"], value=onnx.numpy_helper.from_array(np.asarray(2.0, np.float32))
        ),
        oh.make_node("Shape", ["x"], ["shape"]),
        oh.make_node("Gather", ["shape", "zero"], ["batch"]),
        oh.make_node("Unsqueeze", ["batch", "zeros"], ["batch1"]),
        oh.make_node("Concat", ["batch1", "rest"], ["target"], axis=0),
        oh.make_node("MatMul", ["x", "w"], ["m"]),
        oh.make_node("Add", ["m", "b"], ["a"]),
        oh.make_node("Sub", ["two", "a"], ["s"]),
        oh.make_node("Reshape", ["s", "target"], ["r"]),
        oh.make_node("Transpose", ["r"], ["t"], perm=[0, 2, 1]),
        oh.make_node("ReduceMean", ["t"], ["mean"], axes=[1], keepdims=1),
        oh.make_node("Sub", ["t", "mean"], ["centred"]),
        oh.make_node("Pow", ["centred", "three"], ["cube"]),
        oh.make_node("Div", ["cube", "two"], ["half"]),
        oh.make_node("Mul", ["half", "t"], ["product"]),
        oh.make_node("Neg", ["product"], ["minus"]),
        oh.make_node("Identity", ["minus"], ["y"]),
    ]
    constants = {
        "w": numbers(5, 6), "b": numbers(6), "zero": 0, "zeros": [0], "rest": [2, -1], "three": np.float64(3),
    }  # fmt: skip
    return graph(nodes, ["N", 5], constants, rank=3), rng.uniform(-1, 1, size=(64, 5)).astype(
        np.float32
    )


def pool_sigmoid() -> tuple[onnx.ModelProto, Feeds]:
    nodes = [
        oh.make_node(
            "AveragePool", ["x"], ["p"], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 0, 0], count_include_pad=0
        ),
        oh.make_node("Flatten", ["p"], ["f"], axis=-3),
        oh.make_node("Gemm", ["f", "w", "b"], ["z"], transB=1),
        oh.make_node("Sigmoid", ["z"], ["y"]),
    ]  # fmt: skip
    constants = {"w": numbers(4, 32), "b": numbers(4)}
    return graph(nodes, ["N", 2, 8, 8], constants), rng.normal(size=(40, 2, 8, 8)).astype(
        np.float32
    )


FILES: dict[str, Callable[[], tuple[onnx.ModelProto, Feeds]]] = {
    "gemm_mlp": gemm_mlp,
    "conv_square": conv_square,
    "conv_norm_pool": conv_norm_pool,
    "mixed": mixed,
    "pool_sigmoid": pool_sigmoid,
}


@pytest.mark.parametrize("name", FILES)
def test_encrypted_outputs_are_those_of_the_file(name: str, tmp_path: pathlib.Path) -> None:
    proto, samples = FILES[name]()
    path = tmp_path / f"{name}.onnx"
    onnx.save(proto, path)
    expected = reference(str(path), samples)

    imported = from_onnx(path, samples, degree=7)
    assert imported.model.name == "tested_graph"
    planned = imported.plan(max_error=MAX_ERROR)
    outputs = planned.evaluate(samples)
    print(f"\n{name}: {planned!r}, {[str(one) for one in imported.activations]}")
    has_activation = any(node.op_type in ("Relu", "Sigmoid") for node in proto.graph.node)
    assert (imported.approximation_error < 1e-5) == (not has_activation)
    made = imported.postprocess(outputs)
    assert made.shape == expected.shape
    assert np.abs(made - expected).max() <= imported.approximation_error + 4 * planned.largest_error
    assert np.abs(outputs - imported.scores(samples)).max() <= 2 * MAX_ERROR
    for activation in imported.activations:
        assert imported.approximation_error <= 10 * activation.largest_error


def test_statistics_of_activations_are_stated() -> None:
    proto, samples = gemm_mlp()
    measured = from_onnx(proto, samples, degree=15)
    (one,) = measured.activations
    assert (one.function, one.edge, one.polynomial.degree) == ("relu", "a1", 15)
    hidden = samples @ onnx.numpy_helper.to_array(proto.graph.initializer[0]).T
    assert one.polynomial.lower < hidden.min() and one.polynomial.upper > hidden.max()
    x = np.linspace(one.polynomial.lower, one.polynomial.upper, 999)
    assert np.abs(one.polynomial(x) - np.maximum(x, 0)).max() <= one.largest_error < 0.2
    # By the node's name, by the edge's, and for all.
    for stated in ({"/act/Relu": (-9, 9)}, {"a1": (-9, 9)}, (-9, 9)):
        (one,) = from_onnx(proto, activation_range=stated).activations
        assert (one.polynomial.lower, one.polynomial.upper) == (-9, 9)


@pytest.mark.parametrize("opset", [9, 11, 13, 18, 21])
def test_opsets_put_axes_and_flags_in_other_places(opset: int) -> None:
    axes_are_inputs = opset >= 13
    reduce_axes_are_inputs = opset >= 18
    nodes = [
        oh.make_node("Unsqueeze", ["x", "one"], ["u"]) if axes_are_inputs else oh.make_node("Unsqueeze", ["x"], ["u"], axes=[1]),
        oh.make_node("Dropout", ["u", "ratio"] if opset >= 12 else ["u"], ["d"]),
        oh.make_node("Squeeze", ["d", "one"], ["s"]) if axes_are_inputs else oh.make_node("Squeeze", ["d"], ["s"], axes=[1]),
        oh.make_node("ReduceMean", ["s", "one"], ["y"]) if reduce_axes_are_inputs else oh.make_node("ReduceMean", ["s"], ["y"], axes=[1]),
    ]  # fmt: skip
    used = {name for node in nodes for name in node.input}
    constants = {
        name: value
        for name, value in {"one": [1], "ratio": np.float64(0.5)}.items()
        if name in used
    }
    proto = graph(nodes, ["N", 6], constants, opset=opset)
    samples = rng.normal(size=(5, 6)).astype(np.float32)
    imported = from_onnx(proto.SerializeToString(), samples)
    np.testing.assert_allclose(
        imported.scores(samples), samples.mean(axis=1, keepdims=True), atol=1e-6
    )


def test_sequences_are_images_of_one_row() -> None:
    nodes = [
        oh.make_node("Conv", ["x", "k"], ["c"], pads=[1, 0], dilations=[2], strides=[2]),
        oh.make_node("AveragePool", ["c"], ["p"], kernel_shape=[2]),
        oh.make_node("Slice", ["p", "start", "end", "axis"], ["y"]),
    ]
    constants = {"k": numbers(2, 3, 3), "start": [1], "end": [9], "axis": [-1]}
    proto = graph(nodes, [1, 3, 16], constants, rank=3)
    samples = rng.normal(size=(4, 3, 16)).astype(np.float32)
    imported = from_onnx(proto, samples)
    assert imported.approximation_error < 1e-5
    np.testing.assert_allclose(imported.reference(samples), imported.scores(samples), atol=1e-5)


def one_node(
    kind: str, shape: Sequence[int | str] = ("N", 4), **attributes: Any
) -> onnx.ModelProto:
    return graph(
        [oh.make_node(kind, ["x"], ["y"], name="the_node", **attributes)],
        shape,
        {},
        rank=len(shape),
    )


def after_gemm(kind: str, **attributes: Any) -> onnx.ModelProto:
    nodes = [
        oh.make_node("Gemm", ["x", "w"], ["logits"]),
        oh.make_node(kind, ["logits"], ["y"], name="/head/the_node", **attributes),
    ]
    return graph(nodes, ["N", 4], {"w": numbers(4, 3)})


UNSUPPORTED: dict[str, tuple[Callable[[], onnx.ModelProto], str]] = {
    "softmax": (
        lambda: after_gemm("Softmax"),
        r"node Softmax '/head/the_node' \(which makes 'y'\) cannot be evaluated encrypted: .*"
        r"outputs=\['logits'\].*argmax",
    ),
    "argmax": (lambda: after_gemm("ArgMax", axis=1), r"outputs=\['logits'\].*argmax to the decrypted scores"),
    "max_pool": (
        lambda: one_node("MaxPool", ["N", 1, 4, 4], kernel_shape=[2, 2]),
        "node MaxPool 'the_node'.*Train with AveragePool in its place",
    ),
    "no_range": (
        lambda: one_node("Relu"),
        r"Relu 'the_node'.*Pass samples.*activation_range=\{'the_node': \(lower, upper\)\}",
    ),
    "comparison": (lambda: one_node("Sign"), "Sign 'the_node'.*comparisons.*do it on the client"),
    "unknown": (lambda: one_node("Erf"), r"Erf 'the_node'.*known are Add, AveragePool,.*outputs=\["),
    "fixed_batch": (lambda: one_node("Neg", [8, 4]), "input 'x': its first axis is 8.*dynamic batch axis"),
    "open_size": (
        lambda: one_node("Neg", ["N", 3, "H", "W"]),
        r"expected fixed sizes behind the batch axis, got \['\?', 3, '\?', '\?'\]",
    ),
    "over_batch": (lambda: one_node("Transpose", perm=[1, 0]), "moves the batch axis, which has to stay first"),
    "power": (
        lambda: graph([oh.make_node("Pow", ["x", "e"], ["y"])], ["N", 4], {"e": np.float64(0.5)}),
        "its exponent has to be a whole number from 1 to 8",
    ),
    "division": (
        lambda: graph([oh.make_node("Div", ["one", "x"], ["y"])], ["N", 4], {"one": np.float64(1)}),
        "it divides by encrypted numbers",
    ),
    "product_of_inputs": (
        lambda: graph(
            [oh.make_node("Transpose", ["x"], ["t"], perm=[0, 2, 1]), oh.make_node("MatMul", ["x", "t"], ["y"])],
            ["N", 2, 2], {},
        ),
        "product of two encrypted matrices.*only constants",
    ),
    "ceil": (
        lambda: one_node("AveragePool", ["N", 1, 4, 4], kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1),
        "ceil_mode=1 makes windows that leave the image",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_nodes_that_cannot_run_are_named_with_what_to_do(name: str) -> None:
    make, says = UNSUPPORTED[name]
    with pytest.raises(UnsupportedModelError, match=says) as caught:
        from_onnx(make())
    assert caught.value.code == "INVALID_ARGUMENT"


def test_the_advice_about_softmax_works() -> None:
    proto = after_gemm("Softmax")
    samples = rng.normal(size=(16, 4)).astype(np.float32)
    imported = from_onnx(proto, samples, outputs=["logits"])
    expected = reference(proto, samples)
    scores = imported.scores(samples)
    assert (scores.argmax(axis=1) == expected.argmax(axis=1)).all()
    assert imported.agreement(samples, scores).holds
    with pytest.raises(
        cipherd.InvalidInputError, match="no node makes 'nothing'; the graph has logits, y"
    ):
        from_onnx(proto, outputs=["nothing"])


def test_what_is_no_model_is_refused() -> None:
    with pytest.raises(cipherd.InvalidInputError, match="source: not a valid ONNX model"):
        from_onnx(b"no model")


def test_onnx_is_needed_only_where_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"pip install 'cipherd\[onnx\]'"):
        from_onnx("model.onnx")
