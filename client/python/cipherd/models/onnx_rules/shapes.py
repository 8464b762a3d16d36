"""Rules of nodes that change shapes, or nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cipherd.models.model import Edge
from cipherd.models.onnx_rules.node import BATCH, Constant, Graph, Node, Values, refuse
from cipherd.models.onnx_rules.operands import (
    constant_of,
    edge_name,
    edge_of,
    integers_of,
    item_axis,
    needed_constant,
)

__all__ = [
    "cast",
    "dropout",
    "flatten",
    "gather",
    "identity",
    "reshape",
    "shape_of",
    "slice_axes",
    "squeeze",
    "transpose",
    "unsqueeze",
]


def identity(graph: Graph, node: Node, values: Values) -> Edge:
    return edge_of(node, values[0])


def dropout(graph: Graph, node: Node, values: Values) -> Edge:
    training = constant_of(node, values, 2, "training_mode")
    if training is not None and bool(np.asarray(training).any()):
        raise refuse(node, "it is in training mode; export the model for inference (model.eval())")
    return edge_of(node, values[0])


def cast(graph: Graph, node: Node, values: Values) -> Edge:
    if node.get("to", 1) not in (1, 10, 11, 16):  # FLOAT, FLOAT16, DOUBLE, BFLOAT16
        raise refuse(
            node, "it rounds to whole numbers, which encrypted ones cannot be; leave it out"
        )
    return edge_of(node, values[0])


def _reshape_to(graph: Graph, node: Node, a: Edge, shape: Sequence[int]) -> Edge:
    if a.shape == tuple(shape):
        return a
    return graph.model.reshape(a, shape, name=edge_name(graph, node))


def flatten(graph: Graph, node: Node, values: Values) -> Edge:
    a = edge_of(node, values[0])
    if item_axis(node, int(node.get("axis", 1)), len(a.shape)) != 0:
        raise refuse(node, "its axis has to be 1: everything behind the batch axis")
    return _reshape_to(graph, node, a, (a.element_count,))


def reshape(graph: Graph, node: Node, values: Values) -> Edge:
    a = edge_of(node, values[0])
    target = integers_of(node, values, "shape", 1)
    if not target:
        raise refuse(node, "its shape is missing")
    batch, *sizes = target
    sizes = [a.shape[k] if size == 0 and k < len(a.shape) else size for k, size in enumerate(sizes)]
    known = math.prod(size for size in sizes if size != -1)
    is_open = -1 in sizes
    keeps_items = a.element_count % known == 0 if is_open else known == a.element_count
    # -1 stands for the batch where the rest holds one item.
    if batch not in (BATCH, 1, -1) or not keeps_items or (batch == -1 and is_open):
        raise refuse(
            node,
            f"shape {target} does not keep the batch axis first with the {a.element_count} numbers"
            " of one item behind it",
        )
    return _reshape_to(
        graph, node, a, [a.element_count // known if size == -1 else size for size in sizes]
    )


def squeeze(graph: Graph, node: Node, values: Values) -> Edge:
    a = edge_of(node, values[0])
    axes = integers_of(node, values, "axes", 1)
    if axes is None:
        dropped = {k for k, size in enumerate(a.shape) if size == 1}
    else:
        dropped = {item_axis(node, axis, len(a.shape)) for axis in axes}
    return _reshape_to(graph, node, a, [size for k, size in enumerate(a.shape) if k not in dropped])


def unsqueeze(graph: Graph, node: Node, values: Values) -> Edge:
    a = edge_of(node, values[0])
    axes = integers_of(node, values, "axes", 1) or []
    rank = len(a.shape) + len(axes)
    shape = list(a.shape)
    for axis in sorted(item_axis(node, axis, rank) for axis in axes):
        shape.insert(axis, 1)
    return _reshape_to(graph, node, a, shape)


def transpose(graph: Graph, node: Node, values: Values) -> Edge:
    a = edge_of(node, values[0])
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
        graph.model.select(a, indices.ravel()), indices.shape, name=edge_name(graph, node)
    )


def gather(graph: Graph, node: Node, values: Values) -> Edge:
    a = edge_of(node, values[0])
    axis = item_axis(node, int(node.get("axis", 0)), len(a.shape))
    indices = np.asarray(needed_constant(node, values, 1, "indices"))
    return _take(
        graph, node, a, np.take(np.arange(a.element_count).reshape(a.shape), indices, axis)
    )


def slice_axes(graph: Graph, node: Node, values: Values) -> Edge:
    a = edge_of(node, values[0])
    starts = integers_of(node, values, "starts", 1) or []
    ends = integers_of(node, values, "ends", 2) or []
    axes = integers_of(node, values, "axes", 3) or list(range(len(starts)))
    steps = integers_of(node, values, "steps", 4) or [1] * len(starts)
    chosen = [slice(None)] * len(a.shape)
    for start, end, axis, step in zip(starts, ends, axes, steps):
        stop = None if step < 0 and end < -(2**31) else end
        chosen[item_axis(node, axis, len(a.shape))] = slice(start, stop, step)
    return _take(graph, node, a, np.arange(a.element_count).reshape(a.shape)[tuple(chosen)])


def shape_of(graph: Graph, node: Node, values: Values) -> Constant:
    value = values[0]
    shape = (
        [BATCH, *value.shape]
        if isinstance(value, Edge)
        else list(np.shape(value if value is not None else ()))
    )
    return np.asarray(shape[node.get("start", 0) : node.get("end", None)], dtype=np.int64)
