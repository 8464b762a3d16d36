"""What rules know of the graph that is imported.

A value is a constant, with all its axes, or an edge of the model, which lacks the batch axis.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy.typing as npt

from cipherd.models.activations import Activation, ActivationRange
from cipherd.models.evaluation import Evaluation
from cipherd.models.imported import UnsupportedModelError
from cipherd.models.model import Edge, Model

__all__ = ["BATCH", "Constant", "Graph", "Node", "Rule", "Value", "Values", "refuse"]

Constant: TypeAlias = npt.NDArray[Any]
Value: TypeAlias = Edge | Constant
Values: TypeAlias = Sequence[Value | None]

# How a shape says "as many as there are items": Reshape takes it for "as in the input".
BATCH = 0


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


def refuse(node: Node, why: str) -> UnsupportedModelError:
    """The error of a node that cannot be imported: what it is, and what to do."""
    return UnsupportedModelError(
        f"node {node} cannot be evaluated encrypted: {why}", path=node.name or node.outputs[0]
    )
