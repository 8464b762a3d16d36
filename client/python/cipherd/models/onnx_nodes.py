"""What each node of an ONNX graph becomes: a rule by its kind, and what to do about those that have
none.

A value is a constant, with all its axes, or an edge of the model, which lacks the batch axis.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cipherd.models.activations import FUNCTIONS, Activation, ActivationRange, add_activation
from cipherd.models.evaluation import Evaluation
from cipherd.models.imported import UnsupportedModelError
from cipherd.models.model import Edge, Model
from cipherd.models.polynomial import ActivationFunction

__all__ = ["RULES", "Constant", "Graph", "Node", "Value", "refuse"]

Constant: TypeAlias = npt.NDArray[Any]
Value: TypeAlias = Edge | Constant
Values: TypeAlias = Sequence[Value | None]

# How a shape says "as many as there are items": Reshape takes it for "as in the input".
_BATCH = 0


class Node:
    """A node with its attributes as Python values."""

    def __init__(self, onnx: Any, proto: Any) -> None:
        self.proto = proto
        self.kind: str = (
            proto.op_type if proto.domain in ("", "ai.onnx") else f"{proto.domain}.{proto.op_type}"
        )
        self.name: str = proto.name
        self.inputs: list[str] = list(proto.input)
        self.outputs: list[str] = list(proto.output)
        self._attributes = {
            one.name: onnx.helper.get_attribute_value(one) for one in proto.attribute
        }

    def get(self, name: str, default: Any) -> Any:
        """An attribute, text as str."""
        value = self._attributes.get(name, default)
        return value.decode() if isinstance(value, bytes) else value

    def __str__(self) -> str:
        named = f" '{self.name}'" if self.name else ""
        return f"{self.kind}{named} (which makes '{self.outputs[0]}')"


class Graph(ABC):
    """What rules see of the import that is under way."""

    model: Model
    opset: int
    degree: int
    margin: float
    activations: list[Activation]
    evaluation: Evaluation | None

    @abstractmethod
    def value_range(self, node: Node) -> ActivationRange | None:
        """The stated range of what an activation is given."""


Rule: TypeAlias = Callable[[Graph, Node, Values], Value]


_ADVICE = {
    "Softmax": (
        "it divides by a sum of exponentials. Import the edge before it (outputs=['{input}']), and"
        " apply softmax to the decrypted scores, or argmax, which softmax does not change"
    ),
    "ArgMax": (
        "it compares. Import the edge before it (outputs=['{input}']), and apply argmax to the"
        " decrypted scores"
    ),
    "TopK": (
        "it compares. Import the edge before it (outputs=['{input}']), and sort the decrypted"
        " scores"
    ),
    "MaxPool": "it compares. Train with AveragePool in its place, which is linear",
    "GlobalMaxPool": "it compares. Train with GlobalAveragePool in its place, which is linear",
    "Max": "it compares. Relu, as a polynomial over a stated range, may take its place",
    "Clip": (
        "it compares. Clip inputs before encryption; between layers, leave it out or use Relu,"
        " Sigmoid or Tanh, which become polynomials over a range"
    ),
    "LayerNormalization": (
        "it divides by a deviation of encrypted numbers. Train with BatchNormalization in its"
        " place, which is linear once trained"
    ),
    "LSTM": (
        "recurrent layers are too deep. Convolutions over the sequence (Conv, AveragePool) may take"
        " its place"
    ),
    "Concat": (
        "it joins edges, which models do not have. Sum the results of a layer for each of them"
        " instead: W [a; b] = Wa a + Wb b"
    ),
}
_ADVICE["LogSoftmax"] = _ADVICE["Hardmax"] = _ADVICE["Softmax"]
_ADVICE["ArgMin"] = _ADVICE["ArgMax"]
_ADVICE["Min"] = _ADVICE["Max"]
_ADVICE["InstanceNormalization"] = _ADVICE["GroupNormalization"] = _ADVICE["LayerNormalization"]
_ADVICE["GRU"] = _ADVICE["RNN"] = _ADVICE["LSTM"]
_COMPARISONS = {
    "Equal",
    "Greater",
    "GreaterOrEqual",
    "Less",
    "LessOrEqual",
    "Where",
    "Sign",
    "Abs",
    "NonZero",
    "If",
    "Loop",
}


def refuse(node: Node, why: str = "") -> UnsupportedModelError:
    """The error of a node that cannot be imported: what it is, and what to do."""
    advice = why or _ADVICE.get(node.kind, "").format(input=node.inputs[0] if node.inputs else "")
    if not advice and node.kind in _COMPARISONS:
        advice = (
            "it depends on comparisons, which encrypted numbers do not have. Leave it out, or do it"
            " on the client"
        )
    if not advice:
        domain = node.kind.rpartition(".")[0]
        known = ", ".join(sorted(RULES))
        if domain:
            advice = (
                f"operators of the domain {domain} are not known; convert the model to those of"
                f" ONNX: {known}"
            )
        else:
            advice = (
                f"known are {known}. Rewrite it with these, or import an edge before it"
                " (outputs=[...])"
            )
    return UnsupportedModelError(
        f"node {node} cannot be evaluated encrypted: {advice}", path=node.name or node.outputs[0]
    )


def _edge(node: Node, value: Value | None) -> Edge:
    if not isinstance(value, Edge):
        raise refuse(
            node, "its first input is a constant and a later one is encrypted; exchange them"
        )
    return value


def _constant(node: Node, values: Values, index: int, what: str) -> Constant | None:
    value = values[index] if index < len(values) else None
    if isinstance(value, Edge):
        raise refuse(
            node, f"its {what} depends on the inputs; only constants (weights) are supported there"
        )
    return value


def _needed(node: Node, values: Values, index: int, what: str) -> Constant:
    value = _constant(node, values, index, what)
    if value is None:
        raise refuse(node, f"its {what} is missing")
    return value


def _integers(node: Node, values: Values, attribute: str, index: int) -> list[int] | None:
    """An attribute that later opsets made an input."""
    value = node.get(attribute, None)
    if value is None:
        value = _constant(node, values, index, attribute)
    return None if value is None else [int(one) for one in np.asarray(value).ravel()]


def _item_axis(node: Node, axis: int, rank: int) -> int:
    """An axis with the batch's, as one of an item."""
    whole = axis + rank + 1 if axis < 0 else axis
    if whole == 0:
        raise refuse(
            node,
            "it works over the batch axis; items are encrypted side by side and cannot be mixed",
        )
    return whole - 1


def _for_items(node: Node, constant: Constant, a: Edge) -> Constant:
    """A constant that broadcasts to [batch, ...], without the batch axis."""
    if constant.ndim > len(a.shape):
        if constant.ndim != len(a.shape) + 1 or constant.shape[0] != 1:
            raise refuse(
                node,
                f"a constant of shape {list(constant.shape)} has another row for each item of a"
                " batch",
            )
        constant = constant[0]
    return np.asarray(constant, dtype=np.float64)


def _broadcast(graph: Graph, node: Node, a: Edge, shape: Sequence[int]) -> Edge:
    """An edge as NumPy broadcasts it, by taking elements several times."""
    if a.shape == tuple(shape):
        return a
    # With axes of the batch, the shorter one would meet it.
    if len(a.shape) < len(shape):
        raise refuse(
            node,
            f"'{a.name}' of {list(a.shape)} an item does not broadcast to {list(shape)}; unsqueeze"
            " it first",
        )
    try:
        indices = np.broadcast_to(np.arange(a.element_count).reshape(a.shape), tuple(shape))
    except ValueError as error:
        raise refuse(
            node, f"'{a.name}' of {list(a.shape)} an item does not broadcast to {list(shape)}"
        ) from error
    return graph.model.reshape(
        graph.model.select(a, indices.ravel()), shape, name=_name(graph, node, "wide")
    )


def _name(graph: Graph, node: Node, suffix: str = "") -> str:
    """Of the edge that a node makes."""
    return graph.model.unused_name(node.outputs[0] + (f".{suffix}" if suffix else ""))


def _joint_shape(node: Node, a: Edge, other: tuple[int, ...]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(a.shape, other)
    except ValueError as error:
        raise refuse(
            node, f"shapes {list(a.shape)} and {list(other)} of an item do not broadcast"
        ) from error


def _arithmetic(graph: Graph, node: Node, values: Values) -> Edge:
    model, kind = graph.model, node.kind
    a, b = values[0], values[1]
    if isinstance(a, Edge) and isinstance(b, Edge):
        shape = _joint_shape(node, a, b.shape)
        a, b = _broadcast(graph, node, a, shape), _broadcast(graph, node, b, shape)
        if kind == "Div":
            raise refuse(
                node, "it divides by encrypted numbers. Divide by a constant, or on the client"
            )
        if kind == "Mul" and a == b:
            return model.square(a, name=_name(graph, node))
        add = {"Add": model.add, "Sub": model.subtract, "Mul": model.multiply}[kind]
        return add(a, b, name=_name(graph, node))
    if isinstance(a, Edge):
        edge, constant = a, _for_items(node, np.asarray(b), a)
    else:
        edge = _edge(node, b)
        constant = _for_items(node, np.asarray(a), edge)
        if kind == "Div":
            raise refuse(
                node, "it divides by encrypted numbers. Divide by a constant, or on the client"
            )
        if kind == "Sub":
            edge = model.negate(edge)
            kind = "Add"
    edge = _broadcast(graph, node, edge, _joint_shape(node, edge, constant.shape))
    if kind in ("Add", "Sub"):
        return model.add_constant(
            edge, constant if kind == "Add" else -constant, name=_name(graph, node)
        )
    if kind == "Div":
        if (constant == 0).any():
            raise refuse(node, "it divides by 0")
        constant = 1 / constant
    return model.multiply_constant(edge, constant, name=_name(graph, node))


def _negate(graph: Graph, node: Node, values: Values) -> Edge:
    return graph.model.negate(_edge(node, values[0]), name=_name(graph, node))


def _power(graph: Graph, node: Node, values: Values) -> Edge:
    a = _edge(node, values[0])
    exponents = set(
        np.asarray(_needed(node, values, 1, "exponent"), dtype=np.float64).ravel().tolist()
    )
    exponent = exponents.pop() if len(exponents) == 1 else math.nan
    if exponent not in range(1, 9):
        raise refuse(
            node, "its exponent has to be a whole number from 1 to 8; others are no polynomials"
        )
    return _to_the(graph.model, a, int(exponent))


def _to_the(model: Model, a: Edge, exponent: int) -> Edge:
    """A power by the least depth: of halves, each computed once."""
    known = {1: a}

    def power(k: int) -> Edge:
        if k not in known:
            half, rest = power(k // 2), power(k - k // 2)
            known[k] = model.square(half) if half == rest else model.multiply(half, rest)
        return known[k]

    return power(exponent)


def _gemm(graph: Graph, node: Node, values: Values) -> Edge:
    a = _edge(node, values[0])
    if node.get("transA", 0):
        raise refuse(
            node, "transA=1 would mix the items of a batch; export it with the batch axis first"
        )
    weight = np.asarray(_needed(node, values, 1, "weight"), dtype=np.float64)
    weight = float(node.get("alpha", 1.0)) * (weight if node.get("transB", 0) else weight.T)
    bias = _constant(node, values, 2, "bias")
    if bias is not None:
        bias = float(node.get("beta", 1.0)) * np.broadcast_to(
            _for_items(node, bias, Edge("", (len(weight),))), len(weight)
        )
    return graph.model.linear(a, weight, bias, name=_name(graph, node))


def _matmul(graph: Graph, node: Node, values: Values) -> Edge:
    a = _edge(node, values[0])
    weight = np.asarray(
        _needed(node, values, 1, "second factor (a product of two encrypted matrices)"),
        dtype=np.float64,
    )
    if weight.ndim != 2:
        raise refuse(
            node, f"its weight has to be a matrix [in, out], got shape {list(weight.shape)}"
        )
    if not a.shape or a.shape[-1] != weight.shape[0]:
        raise refuse(
            node, f"its weight {list(weight.shape)} does not fit an item of shape {list(a.shape)}"
        )
    rows = a.shape[:-1]
    if not rows:
        return graph.model.linear(a, weight.T, name=_name(graph, node))
    # The same layer for each row.
    whole = np.kron(np.eye(math.prod(rows)), weight.T)
    made = graph.model.linear(a, whole)
    return graph.model.reshape(made, (*rows, weight.shape[1]), name=_name(graph, node))


def _as_image(graph: Graph, a: Edge, node: Node) -> tuple[Edge, int]:
    """[channels, height, width] of an item with one or two axes behind the channels, and how many
    there were.
    """
    spatial = len(a.shape) - 1
    if spatial == 2:
        return a, 2
    if spatial == 1:
        return graph.model.reshape(a, (a.shape[0], 1, a.shape[1])), 1
    raise refuse(
        node,
        f"it has {spatial} axes behind the channels; expected an image (two) or a sequence (one)",
    )


def _as_item(graph: Graph, made: Edge, spatial: int, node: Node) -> Edge:
    if spatial == 2:
        return made
    return graph.model.reshape(made, (made.shape[0], made.shape[2]), name=_name(graph, node))


def _two(numbers: Sequence[int], fill: int) -> tuple[int, int]:
    return (fill, int(numbers[0])) if len(numbers) == 1 else (int(numbers[0]), int(numbers[1]))


def _pads(
    node: Node,
    size: Sequence[int],
    kernel: tuple[int, int],
    strides: tuple[int, int],
    dilations: tuple[int, int],
) -> tuple[int, int, int, int]:
    """Top, left, bottom, right, of `pads` or `auto_pad`."""
    auto = node.get("auto_pad", "NOTSET")
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        before, after = [], []
        for k in range(2):
            reach = (kernel[k] - 1) * dilations[k] + 1
            count = -(-size[k] // strides[k])
            total = max((count - 1) * strides[k] + reach - size[k], 0)
            less, more = total // 2, total - total // 2
            before.append(less if auto == "SAME_UPPER" else more)
            after.append(more if auto == "SAME_UPPER" else less)
        return before[0], before[1], after[0], after[1]
    pads = [int(one) for one in node.get("pads", [])]
    if not pads or auto == "VALID":
        return 0, 0, 0, 0
    if len(pads) == 2:
        return 0, pads[0], 0, pads[1]
    return pads[0], pads[1], pads[2], pads[3]


def _conv(graph: Graph, node: Node, values: Values) -> Edge:
    image, spatial = _as_image(graph, _edge(node, values[0]), node)
    weight = np.asarray(_needed(node, values, 1, "weight"), dtype=np.float64)
    if spatial == 1:
        weight = weight[:, :, None, :]
    bias = _constant(node, values, 2, "bias")
    strides = _two(node.get("strides", [1] * spatial), 1)
    dilations = _two(node.get("dilations", [1] * spatial), 1)
    kernel = (weight.shape[2], weight.shape[3])
    made = graph.model.conv2d(
        image, weight, bias,
        strides=strides,
        pads=_pads(node, image.shape[1:], kernel, strides, dilations),
        dilations=dilations,
        groups=int(node.get("group", 1)),
        name=_name(graph, node) if spatial == 2 else None,
    )  # fmt: skip
    return _as_item(graph, made, spatial, node)


def _average_pool(graph: Graph, node: Node, values: Values) -> Edge:
    image, spatial = _as_image(graph, _edge(node, values[0]), node)
    kernel = _two(node.get("kernel_shape", [1] * spatial), 1)
    strides = _two(node.get("strides", [1] * spatial), 1)
    if any(one != 1 for one in node.get("dilations", [])):
        raise refuse(
            node,
            "dilations other than 1 are not supported here; a Conv with equal weights is the same",
        )
    pads = _pads(node, image.shape[1:], kernel, strides, (1, 1))
    if node.get("ceil_mode", 0):
        reach = [image.shape[1 + k] + pads[k] + pads[2 + k] - kernel[k] for k in range(2)]
        if any(one % stride for one, stride in zip(reach, strides)):
            raise refuse(
                node,
                "ceil_mode=1 makes windows that leave the image; set it to 0, or pad the image",
            )
    made = graph.model.average_pool2d(
        image, kernel,
        strides=strides,
        pads=pads,
        count_include_pad=bool(node.get("count_include_pad", 0)),
        name=_name(graph, node) if spatial == 2 else None,
    )  # fmt: skip
    return _as_item(graph, made, spatial, node)


def _global_average_pool(graph: Graph, node: Node, values: Values) -> Edge:
    image, spatial = _as_image(graph, _edge(node, values[0]), node)
    made = graph.model.average_pool2d(
        image, (image.shape[1], image.shape[2]), name=_name(graph, node) if spatial == 2 else None
    )
    return _as_item(graph, made, spatial, node)


def _batch_normalization(graph: Graph, node: Node, values: Values) -> Edge:
    a = _edge(node, values[0])
    if node.get("training_mode", 0):
        raise refuse(node, "it is in training mode; export the model for inference (model.eval())")
    scale, bias, mean, variance = (
        np.asarray(_needed(node, values, k, "statistics"), dtype=np.float64) for k in range(1, 5)
    )
    factor = scale / np.sqrt(variance + float(node.get("epsilon", 1e-5)))
    channels = (-1, *[1] * (len(a.shape) - 1))
    made = graph.model.multiply_constant(a, factor.reshape(channels))
    return graph.model.add_constant(
        made, (bias - mean * factor).reshape(channels), name=_name(graph, node)
    )


def _identity(graph: Graph, node: Node, values: Values) -> Edge:
    return _edge(node, values[0])


def _dropout(graph: Graph, node: Node, values: Values) -> Edge:
    training = _constant(node, values, 2, "training_mode")
    if training is not None and bool(np.asarray(training).any()):
        raise refuse(node, "it is in training mode; export the model for inference (model.eval())")
    return _edge(node, values[0])


def _cast(graph: Graph, node: Node, values: Values) -> Edge:
    if node.get("to", 1) not in (1, 10, 11, 16):  # FLOAT, FLOAT16, DOUBLE, BFLOAT16
        raise refuse(
            node, "it rounds to whole numbers, which encrypted ones cannot be; leave it out"
        )
    return _edge(node, values[0])


def _reshape_to(graph: Graph, node: Node, a: Edge, shape: Sequence[int]) -> Edge:
    if a.shape == tuple(shape):
        return a
    return graph.model.reshape(a, shape, name=_name(graph, node))


def _flatten(graph: Graph, node: Node, values: Values) -> Edge:
    a = _edge(node, values[0])
    if _item_axis(node, int(node.get("axis", 1)), len(a.shape)) != 0:
        raise refuse(node, "its axis has to be 1: everything behind the batch axis")
    return _reshape_to(graph, node, a, (a.element_count,))


def _reshape(graph: Graph, node: Node, values: Values) -> Edge:
    a = _edge(node, values[0])
    target = _integers(node, values, "shape", 1)
    if not target:
        raise refuse(node, "its shape is missing")
    batch, *sizes = target
    sizes = [a.shape[k] if size == 0 and k < len(a.shape) else size for k, size in enumerate(sizes)]
    known = math.prod(size for size in sizes if size != -1)
    is_open = -1 in sizes
    keeps_items = a.element_count % known == 0 if is_open else known == a.element_count
    # -1 stands for the batch where the rest holds one item.
    if batch not in (_BATCH, 1, -1) or not keeps_items or (batch == -1 and is_open):
        raise refuse(
            node,
            f"shape {target} does not keep the batch axis first with the {a.element_count} numbers"
            " of one item behind it",
        )
    return _reshape_to(
        graph, node, a, [a.element_count // known if size == -1 else size for size in sizes]
    )


def _squeeze(graph: Graph, node: Node, values: Values) -> Edge:
    a = _edge(node, values[0])
    axes = _integers(node, values, "axes", 1)
    if axes is None:
        dropped = {k for k, size in enumerate(a.shape) if size == 1}
    else:
        dropped = {_item_axis(node, axis, len(a.shape)) for axis in axes}
    return _reshape_to(graph, node, a, [size for k, size in enumerate(a.shape) if k not in dropped])


def _unsqueeze(graph: Graph, node: Node, values: Values) -> Edge:
    a = _edge(node, values[0])
    axes = _integers(node, values, "axes", 1) or []
    rank = len(a.shape) + len(axes)
    shape = list(a.shape)
    for axis in sorted(_item_axis(node, axis, rank) for axis in axes):
        shape.insert(axis, 1)
    return _reshape_to(graph, node, a, shape)


def _transpose(graph: Graph, node: Node, values: Values) -> Edge:
    a = _edge(node, values[0])
    rank = len(a.shape)
    order = [int(one) for one in node.get("perm", range(rank, -1, -1))]
    if order[0] != 0:
        raise refuse(node, f"perm={order} moves the batch axis, which has to stay first")
    axes = [one - 1 for one in order[1:]]
    moved = np.arange(a.element_count).reshape(a.shape).transpose(axes)
    return _take(graph, node, a, moved)


def _take(graph: Graph, node: Node, a: Edge, indices: npt.NDArray[Any]) -> Edge:
    """Elements by their position in an item, in the shape of `indices`."""
    return graph.model.reshape(
        graph.model.select(a, indices.ravel()), indices.shape, name=_name(graph, node)
    )


def _gather(graph: Graph, node: Node, values: Values) -> Edge:
    a = _edge(node, values[0])
    axis = _item_axis(node, int(node.get("axis", 0)), len(a.shape))
    indices = np.asarray(_needed(node, values, 1, "indices"))
    return _take(
        graph, node, a, np.take(np.arange(a.element_count).reshape(a.shape), indices, axis)
    )


def _slice(graph: Graph, node: Node, values: Values) -> Edge:
    a = _edge(node, values[0])
    starts = _integers(node, values, "starts", 1) or []
    ends = _integers(node, values, "ends", 2) or []
    axes = _integers(node, values, "axes", 3) or list(range(len(starts)))
    steps = _integers(node, values, "steps", 4) or [1] * len(starts)
    chosen = [slice(None)] * len(a.shape)
    for start, end, axis, step in zip(starts, ends, axes, steps):
        stop = None if step < 0 and end < -(2**31) else end
        chosen[_item_axis(node, axis, len(a.shape))] = slice(start, stop, step)
    return _take(graph, node, a, np.arange(a.element_count).reshape(a.shape)[tuple(chosen)])


def _reduce(graph: Graph, node: Node, values: Values) -> Edge:
    a = _edge(node, values[0])
    axes = _integers(node, values, "axes", 1)
    if not axes:
        if node.get("noop_with_empty_axes", 0):
            return a
        raise refuse(
            node,
            "without axes it would mix the items of a batch; give it the axes behind the batch's",
        )
    items = sorted(_item_axis(node, axis, len(a.shape)) for axis in axes)
    keep_axes = bool(node.get("keepdims", 1))
    if node.kind == "ReduceSum":
        return graph.model.sum(a, items, keep_axes=keep_axes, name=_name(graph, node))
    made = graph.model.sum(a, items, keep_axes=keep_axes)
    count = math.prod(a.shape[axis] for axis in items)
    return graph.model.multiply_constant(made, 1 / count, name=_name(graph, node))


def _shape(graph: Graph, node: Node, values: Values) -> Constant:
    value = values[0]
    shape = (
        [_BATCH, *value.shape]
        if isinstance(value, Edge)
        else list(np.shape(value if value is not None else ()))
    )
    return np.asarray(shape[node.get("start", 0) : node.get("end", None)], dtype=np.int64)


def _function_of(node: Node) -> tuple[str, ActivationFunction]:
    kind = node.kind
    if kind == "LeakyRelu":
        slope = float(node.get("alpha", 0.01))
        return "leaky_relu", lambda x: np.where(x > 0, x, slope * x)
    if kind == "Elu":
        alpha = float(node.get("alpha", 1.0))
        return "elu", lambda x: np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0.0)))
    if kind == "HardSigmoid":
        a, b = float(node.get("alpha", 0.2)), float(node.get("beta", 0.5))
        return "hard_sigmoid", lambda x: np.clip(a * x + b, 0.0, 1.0)
    name = kind.lower()
    return name, FUNCTIONS[name]


def _activation(graph: Graph, node: Node, values: Values) -> Edge:
    a = _edge(node, values[0])
    name, function = _function_of(node)
    stated = graph.value_range(node)
    if stated is None and graph.evaluation is None:
        key = node.name or node.outputs[0]
        raise refuse(
            node,
            "it becomes a polynomial over the range of what it is given, which is not known. Pass"
            " samples (as training data), over which it is measured, or"
            f" activation_range={{'{key}': (lower, upper)}}",
        )
    edge, activation = add_activation(
        graph.model, a, name, function,
        name=_name(graph, node),
        degree=graph.degree,
        stated=stated,
        values=None if graph.evaluation is None else graph.evaluation.values(a),
        margin=graph.margin,
    )  # fmt: skip
    graph.activations.append(activation)
    return edge


RULES: dict[str, Rule] = {
    **dict.fromkeys(["Add", "Sub", "Mul", "Div"], _arithmetic),
    **dict.fromkeys(
        ["Relu", "Sigmoid", "Tanh", "LeakyRelu", "Elu", "Gelu", "Softplus", "HardSigmoid"],
        _activation,
    ),
    **dict.fromkeys(["ReduceMean", "ReduceSum"], _reduce),
    "AveragePool": _average_pool,
    "BatchNormalization": _batch_normalization,
    "Cast": _cast,
    "Conv": _conv,
    "Dropout": _dropout,
    "Flatten": _flatten,
    "Gather": _gather,
    "Gemm": _gemm,
    "GlobalAveragePool": _global_average_pool,
    "Identity": _identity,
    "MatMul": _matmul,
    "Neg": _negate,
    "Pow": _power,
    "Reshape": _reshape,
    "Shape": _shape,
    "Slice": _slice,
    "Squeeze": _squeeze,
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
}
