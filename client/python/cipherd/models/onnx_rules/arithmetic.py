"""Rules of nodes that compute number by number, and of sums and means over axes."""

from __future__ import annotations

import math

import numpy as np

from cipherd.models.activations import FUNCTIONS, add_activation
from cipherd.models.model import Edge, Model
from cipherd.models.onnx_rules.node import Graph, Node, Values, refuse
from cipherd.models.onnx_rules.operands import (
    broadcast,
    edge_name,
    edge_of,
    for_items,
    integers_of,
    item_axis,
    joint_shape,
    needed_constant,
)
from cipherd.models.polynomial import ActivationFunction

__all__ = ["activation", "arithmetic", "negate", "power", "reduce"]


def arithmetic(graph: Graph, node: Node, values: Values) -> Edge:
    model, kind = graph.model, node.kind
    a, b = values[0], values[1]
    if isinstance(a, Edge) and isinstance(b, Edge):
        shape = joint_shape(node, a, b.shape)
        a, b = broadcast(graph, node, a, shape), broadcast(graph, node, b, shape)
        if kind == "Div":
            raise refuse(
                node, "it divides by encrypted numbers. Divide by a constant, or on the client"
            )
        if kind == "Mul" and a == b:
            return model.square(a, name=edge_name(graph, node))
        add = {"Add": model.add, "Sub": model.subtract, "Mul": model.multiply}[kind]
        return add(a, b, name=edge_name(graph, node))
    if isinstance(a, Edge):
        edge, constant = a, for_items(node, np.asarray(b), a)
    else:
        edge = edge_of(node, b)
        constant = for_items(node, np.asarray(a), edge)
        if kind == "Div":
            raise refuse(
                node, "it divides by encrypted numbers. Divide by a constant, or on the client"
            )
        if kind == "Sub":
            edge = model.negate(edge)
            kind = "Add"
    edge = broadcast(graph, node, edge, joint_shape(node, edge, constant.shape))
    if kind in ("Add", "Sub"):
        return model.add_constant(
            edge, constant if kind == "Add" else -constant, name=edge_name(graph, node)
        )
    if kind == "Div":
        if (constant == 0).any():
            raise refuse(node, "it divides by 0")
        constant = 1 / constant
    return model.multiply_constant(edge, constant, name=edge_name(graph, node))


def negate(graph: Graph, node: Node, values: Values) -> Edge:
    return graph.model.negate(edge_of(node, values[0]), name=edge_name(graph, node))


def power(graph: Graph, node: Node, values: Values) -> Edge:
    a = edge_of(node, values[0])
    exponents = set(
        np.asarray(needed_constant(node, values, 1, "exponent"), dtype=np.float64).ravel().tolist()
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


def reduce(graph: Graph, node: Node, values: Values) -> Edge:
    a = edge_of(node, values[0])
    axes = integers_of(node, values, "axes", 1)
    if not axes:
        if node.get("noop_with_empty_axes", 0):
            return a
        raise refuse(
            node,
            "without axes it would mix the items of a batch; give it the axes behind the batch's",
        )
    items = sorted(item_axis(node, axis, len(a.shape)) for axis in axes)
    keep_axes = bool(node.get("keepdims", 1))
    if node.kind == "ReduceSum":
        return graph.model.sum(a, items, keep_axes=keep_axes, name=edge_name(graph, node))
    made = graph.model.sum(a, items, keep_axes=keep_axes)
    count = math.prod(a.shape[axis] for axis in items)
    return graph.model.multiply_constant(made, 1 / count, name=edge_name(graph, node))


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


def activation(graph: Graph, node: Node, values: Values) -> Edge:
    a = edge_of(node, values[0])
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
        name=edge_name(graph, node),
        degree=graph.degree,
        stated=stated,
        values=None if graph.evaluation is None else graph.evaluation.values(a),
        margin=graph.margin,
    )  # fmt: skip
    graph.activations.append(activation)
    return edge
