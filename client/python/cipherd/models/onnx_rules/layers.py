"""Rules of layers with weights, and of pools."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from cipherd.models.model import Edge
from cipherd.models.onnx_rules.node import Graph, Node, Values, refuse
from cipherd.models.onnx_rules.operands import (
    constant_of,
    edge_name,
    edge_of,
    for_items,
    needed_constant,
)

__all__ = ["average_pool", "batch_normalization", "conv", "gemm", "global_average_pool", "matmul"]


def gemm(graph: Graph, node: Node, values: Values) -> Edge:
    a = edge_of(node, values[0])
    if node.get("transA", 0):
        raise refuse(
            node, "transA=1 would mix the items of a batch; export it with the batch axis first"
        )
    weight = np.asarray(needed_constant(node, values, 1, "weight"), dtype=np.float64)
    weight = float(node.get("alpha", 1.0)) * (weight if node.get("transB", 0) else weight.T)
    bias = constant_of(node, values, 2, "bias")
    if bias is not None:
        bias = float(node.get("beta", 1.0)) * np.broadcast_to(
            for_items(node, bias, Edge("", (len(weight),))), len(weight)
        )
    return graph.model.linear(a, weight, bias, name=edge_name(graph, node))


def matmul(graph: Graph, node: Node, values: Values) -> Edge:
    a = edge_of(node, values[0])
    weight = np.asarray(
        needed_constant(node, values, 1, "second factor (a product of two encrypted matrices)"),
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
        return graph.model.linear(a, weight.T, name=edge_name(graph, node))
    # The same layer for each row.
    whole = np.kron(np.eye(math.prod(rows)), weight.T)
    made = graph.model.linear(a, whole)
    return graph.model.reshape(made, (*rows, weight.shape[1]), name=edge_name(graph, node))


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
    return graph.model.reshape(made, (made.shape[0], made.shape[2]), name=edge_name(graph, node))


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


def conv(graph: Graph, node: Node, values: Values) -> Edge:
    image, spatial = _as_image(graph, edge_of(node, values[0]), node)
    weight = np.asarray(needed_constant(node, values, 1, "weight"), dtype=np.float64)
    if spatial == 1:
        weight = weight[:, :, None, :]
    bias = constant_of(node, values, 2, "bias")
    strides = _two(node.get("strides", [1] * spatial), 1)
    dilations = _two(node.get("dilations", [1] * spatial), 1)
    kernel = (weight.shape[2], weight.shape[3])
    made = graph.model.conv2d(
        image, weight, bias,
        strides=strides,
        pads=_pads(node, image.shape[1:], kernel, strides, dilations),
        dilations=dilations,
        groups=int(node.get("group", 1)),
        name=edge_name(graph, node) if spatial == 2 else None,
    )  # fmt: skip
    return _as_item(graph, made, spatial, node)


def average_pool(graph: Graph, node: Node, values: Values) -> Edge:
    image, spatial = _as_image(graph, edge_of(node, values[0]), node)
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
        name=edge_name(graph, node) if spatial == 2 else None,
    )  # fmt: skip
    return _as_item(graph, made, spatial, node)


def global_average_pool(graph: Graph, node: Node, values: Values) -> Edge:
    image, spatial = _as_image(graph, edge_of(node, values[0]), node)
    made = graph.model.average_pool2d(
        image,
        (image.shape[1], image.shape[2]),
        name=edge_name(graph, node) if spatial == 2 else None,
    )
    return _as_item(graph, made, spatial, node)


def batch_normalization(graph: Graph, node: Node, values: Values) -> Edge:
    a = edge_of(node, values[0])
    if node.get("training_mode", 0):
        raise refuse(node, "it is in training mode; export the model for inference (model.eval())")
    scale, bias, mean, variance = (
        np.asarray(needed_constant(node, values, k, "statistics"), dtype=np.float64)
        for k in range(1, 5)
    )
    factor = scale / np.sqrt(variance + float(node.get("epsilon", 1e-5)))
    channels = (-1, *[1] * (len(a.shape) - 1))
    made = graph.model.multiply_constant(a, factor.reshape(channels))
    return graph.model.add_constant(
        made, (bias - mean * factor).reshape(channels), name=edge_name(graph, node)
    )
