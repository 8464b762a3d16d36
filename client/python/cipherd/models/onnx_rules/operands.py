"""What rules ask of a node's inputs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cipherd.models.model import Edge
from cipherd.models.onnx_rules.node import Constant, Graph, Node, Value, Values, refuse

__all__ = [
    "broadcast",
    "constant_of",
    "edge_name",
    "edge_of",
    "for_items",
    "integers_of",
    "item_axis",
    "joint_shape",
    "needed_constant",
]


def edge_of(node: Node, value: Value | None) -> Edge:
    if not isinstance(value, Edge):
        raise refuse(
            node, "its first input is a constant and a later one is encrypted; exchange them"
        )
    return value


def constant_of(node: Node, values: Values, index: int, what: str) -> Constant | None:
    value = values[index] if index < len(values) else None
    if isinstance(value, Edge):
        raise refuse(
            node, f"its {what} depends on the inputs; only constants (weights) are supported there"
        )
    return value


def needed_constant(node: Node, values: Values, index: int, what: str) -> Constant:
    value = constant_of(node, values, index, what)
    if value is None:
        raise refuse(node, f"its {what} is missing")
    return value


def integers_of(node: Node, values: Values, attribute: str, index: int) -> list[int] | None:
    """An attribute that later opsets made an input."""
    value = node.get(attribute, None)
    if value is None:
        value = constant_of(node, values, index, attribute)
    return None if value is None else [int(one) for one in np.asarray(value).ravel()]


def item_axis(node: Node, axis: int, rank: int) -> int:
    """An axis with the batch's, as one of an item."""
    whole = axis + rank + 1 if axis < 0 else axis
    if whole == 0:
        raise refuse(
            node,
            "it works over the batch axis; items are encrypted side by side and cannot be mixed",
        )
    return whole - 1


def for_items(node: Node, constant: Constant, a: Edge) -> Constant:
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


def broadcast(graph: Graph, node: Node, a: Edge, shape: Sequence[int]) -> Edge:
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
        graph.model.select(a, indices.ravel()), shape, name=edge_name(graph, node, "wide")
    )


def edge_name(graph: Graph, node: Node, suffix: str = "") -> str:
    """Of the edge that a node makes."""
    return graph.model.unused_name(node.outputs[0] + (f".{suffix}" if suffix else ""))


def joint_shape(node: Node, a: Edge, other: tuple[int, ...]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(a.shape, other)
    except ValueError as error:
        raise refuse(
            node, f"shapes {list(a.shape)} and {list(other)} of an item do not broadcast"
        ) from error
