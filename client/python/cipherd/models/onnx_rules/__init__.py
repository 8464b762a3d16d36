"""What each node of an ONNX graph becomes: a rule by its kind."""

from __future__ import annotations

from cipherd.models.onnx_rules import arithmetic, layers, shapes
from cipherd.models.onnx_rules.advice import advice_on
from cipherd.models.onnx_rules.node import Constant, Graph, Node, Rule, Value, refuse

__all__ = ["RULES", "Constant", "Graph", "Node", "Value", "refuse", "rule_of"]

RULES: dict[str, Rule] = {
    **dict.fromkeys(["Add", "Sub", "Mul", "Div"], arithmetic.arithmetic),
    **dict.fromkeys(
        ["Relu", "Sigmoid", "Tanh", "LeakyRelu", "Elu", "Gelu", "Softplus", "HardSigmoid"],
        arithmetic.activation,
    ),
    **dict.fromkeys(["ReduceMean", "ReduceSum"], arithmetic.reduce),
    "AveragePool": layers.average_pool,
    "BatchNormalization": layers.batch_normalization,
    "Cast": shapes.cast,
    "Conv": layers.conv,
    "Dropout": shapes.dropout,
    "Flatten": shapes.flatten,
    "Gather": shapes.gather,
    "Gemm": layers.gemm,
    "GlobalAveragePool": layers.global_average_pool,
    "Identity": shapes.identity,
    "MatMul": layers.matmul,
    "Neg": arithmetic.negate,
    "Pow": arithmetic.power,
    "Reshape": shapes.reshape,
    "Shape": shapes.shape_of,
    "Slice": shapes.slice_axes,
    "Squeeze": shapes.squeeze,
    "Transpose": shapes.transpose,
    "Unsqueeze": shapes.unsqueeze,
}


def rule_of(node: Node) -> Rule:
    """Raises UnsupportedModelError, saying what to do, where the node's kind has none."""
    rule = RULES.get(node.kind)
    if rule is None:
        raise refuse(node, advice_on(node, RULES))
    return rule
