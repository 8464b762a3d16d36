"""ONNX graphs to models. The package onnx is imported when one is."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cipherd.errors import invalid_input
from cipherd.models.activations import Activation, ActivationRange
from cipherd.models.evaluation import Evaluation
from cipherd.models.imported import ImportedModel, UnsupportedModelError
from cipherd.models.model import Edge, Model, Samples
from cipherd.models.onnx_rules import Constant, Graph, Node, Value, rule_of
from cipherd.models.polynomial import Array

__all__ = ["from_onnx"]

_Ranges: TypeAlias = ActivationRange | Mapping[str, ActivationRange]


def from_onnx(
    source: str | os.PathLike[str] | bytes | Any,
    samples: Samples | None = None,
    *,
    outputs: Sequence[str] | None = None,
    bounds: tuple[float, float] | None = None,
    activation_range: _Ranges | None = None,
    degree: int = 7,
    range_margin: float = 1.25,
    name: str | None = None,
) -> ImportedModel:
    """An ONNX graph as a model; its first axis is the batch's.

    Relu, Sigmoid and Tanh become polynomials over a range: stated, or measured over ``samples``.
    Everything else is computed exactly. Needs the package onnx (``pip install 'cipherd[onnx]'``).

    Args:
        source: Path of an .onnx file, its bytes, or an ``onnx.ModelProto``.
        samples: Typical inputs, ``[n, ...]``, or a dict by input.
        outputs: Tensors to return, in place of the graph's outputs: as the edge before a Softmax.
        bounds: The least and the largest number of any input; those of the samples unless given,
            else -1 and 1.
        activation_range: ``(lower, upper)`` of what activations are given, for all, or by the name
            of the node or of its output tensor; others are measured.
        degree: Of polynomials that stand for functions. 3, 7, 15 use a depth best.
        range_margin: A measured range is taken so many times as wide.
        name: The program's name; that of the graph unless given.

    Raises:
        UnsupportedModelError: A node cannot be evaluated encrypted; the message names it and says
            what to do.
        InvalidInputError: An argument does not fit.
    """
    onnx = _import_onnx()
    proto = _load(onnx, source)
    return _Importer(
        onnx, proto, samples, outputs, bounds, activation_range, degree, range_margin, name
    ).run()


def _import_onnx() -> Any:
    try:
        import onnx
        import onnx.numpy_helper
        import onnx.reference
        import onnx.shape_inference
    except ImportError as error:
        raise ImportError(
            "from_onnx needs the package onnx: pip install 'cipherd[onnx]'"
        ) from error
    return onnx


def _load(onnx: Any, source: Any) -> Any:
    if isinstance(source, onnx.ModelProto):
        return source
    try:
        if isinstance(source, (bytes, bytearray)):
            proto = onnx.load_model_from_string(bytes(source))
        else:
            proto = onnx.load(os.fspath(source))
        onnx.checker.check_model(proto)
    except (OSError, TypeError):
        raise
    except Exception as error:  # onnx and protobuf have a class of their own for each failure
        raise invalid_input("source", f"not a valid ONNX model: {error}") from error
    return proto


class _Importer(Graph):
    """Goes through the nodes in order; each becomes a constant, or operations of the model."""

    def __init__(
        self,
        onnx: Any,
        proto: Any,
        samples: Samples | None,
        outputs: Sequence[str] | None,
        bounds: tuple[float, float] | None,
        activation_range: _Ranges | None,
        degree: int,
        margin: float,
        name: str | None,
    ) -> None:
        self._onnx = onnx
        self._proto = proto
        self.opset = next(
            (one.version for one in proto.opset_import if one.domain in ("", "ai.onnx")), 1
        )
        self.model = Model(name or _program_name(proto.graph.name))
        self.degree = degree
        self.margin = margin
        self._ranges = activation_range
        self.activations: list[Activation] = []
        self._values: dict[str, Value] = {
            one.name: np.asarray(onnx.numpy_helper.to_array(one)) for one in proto.graph.initializer
        }
        graph_inputs = [one for one in proto.graph.input if one.name not in self._values]
        self._input_names = {one.name: self.model.unused_name(one.name) for one in graph_inputs}
        self._samples = _rename(samples, self._input_names)
        for one in graph_inputs:
            self._values[one.name] = self._add_input(one, bounds)
        self._output_names = list(outputs or [one.name for one in proto.graph.output])
        self.evaluation = None if self._samples is None else Evaluation(self.model, self._samples)

    def run(self) -> ImportedModel:
        needed = self._needed_nodes()
        for proto in needed:
            node = Node(self._onnx, proto)
            values = [self._values[name] if name else None for name in node.inputs]
            if node.kind != "Shape" and not any(isinstance(one, Edge) for one in values):
                made: Sequence[Value] = self._fold(node, values)
            else:
                made = [rule_of(node)(self, node, values)]
            self._values.update(zip(node.outputs, made))
        names = self._add_outputs()
        return self._imported(names)

    def value_range(self, node: Node) -> ActivationRange | None:
        if isinstance(self._ranges, Mapping):
            return next(
                (self._ranges[key] for key in (node.name, *node.outputs) if key in self._ranges),
                None,
            )
        return self._ranges

    def _add_input(self, proto: Any, bounds: tuple[float, float] | None) -> Edge:
        tensor = proto.type.tensor_type
        sizes = [one.dim_value if one.HasField("dim_value") else 0 for one in tensor.shape.dim]
        place = f"input '{proto.name}'"
        if not sizes:
            raise UnsupportedModelError(
                f"{place}: expected a batch axis first, as [N, features], got no axes"
            )
        if sizes[0] > 1:
            raise UnsupportedModelError(
                f"{place}: its first axis is {sizes[0]}, but has to be the batch's: of a size that"
                " is left open, or 1; export the model with a dynamic batch axis"
            )
        if any(size < 1 for size in sizes[1:]):
            raise UnsupportedModelError(
                f"{place}: expected fixed sizes behind the batch axis, got"
                f" {[size or '?' for size in sizes]}; export the model for one input size"
            )
        edge_name = self._input_names[proto.name]
        lower, upper = bounds or (-1.0, 1.0)
        if bounds is None and self._samples is not None:
            samples = np.asarray(
                self._samples[edge_name] if isinstance(self._samples, Mapping) else self._samples,
                dtype=np.float64,
            )
            lower, upper = float(samples.min()), float(samples.max())
        return self.model.input(edge_name, sizes[1:], lower=lower, upper=upper)

    def _needed_nodes(self) -> list[Any]:
        """Those that outputs depend on, in their order."""
        made = {name for node in self._proto.graph.node for name in node.output if name}
        for name in self._output_names:
            if name not in made:
                raise invalid_input(
                    "outputs",
                    f"no node makes '{name}'; the graph has"
                    f" {', '.join(sorted(made)) or 'no nodes'}",
                )
        needed = set(self._output_names)
        nodes: list[Any] = []
        for node in reversed(self._proto.graph.node):
            if needed & set(node.output):
                nodes.append(node)
                needed |= set(node.input)
        return nodes[::-1]

    def _fold(self, node: Node, values: Sequence[Value | None]) -> Sequence[Constant]:
        """A node of constants only, evaluated."""
        names = [name for name in node.inputs if name]
        helper = self._onnx.helper
        untyped = self._onnx.TypeProto()
        graph = helper.make_graph(
            [node.proto],
            "folded",
            [helper.make_value_info(name, untyped) for name in names],
            [helper.make_value_info(name, untyped) for name in node.outputs],
        )
        model = helper.make_model(graph, opset_imports=self._proto.opset_import)
        feeds = {name: value for name, value in zip(node.inputs, values) if name}
        return list(self._onnx.reference.ReferenceEvaluator(model).run(None, feeds))

    def _add_outputs(self) -> list[str]:
        names: list[str] = []
        inputs = {one.edge for one in self.model.inputs}
        for name in self._output_names:
            edge = self._values[name]
            if not isinstance(edge, Edge):
                raise UnsupportedModelError(
                    f"output '{name}' does not depend on any input; leave it out of outputs="
                )
            if edge in inputs:
                edge = self.model.multiply_constant(edge, 1.0)
            lawful = re.sub(r"[^A-Za-z0-9_.-]", ".", name).strip(".")[-40:] or "output"
            names.append(lawful)
            self.model.output(lawful, edge)
        return names

    def _imported(self, names: list[str]) -> ImportedModel:
        edges = list(self.model.outputs.values())

        def reference(samples: npt.ArrayLike) -> Array:
            return self._reference(samples)

        error = 0.0
        if self.evaluation is not None and self._samples is not None and len(edges) == 1:
            made = self.evaluation.values(edges[0])
            error = float(
                np.abs(made.reshape(len(made), -1) - self._reference(self._samples)).max()
            )
        shape = edges[0].shape

        def postprocess(outputs: npt.ArrayLike) -> npt.NDArray[Any]:
            return np.asarray(outputs, dtype=np.float64).reshape(-1, *shape)

        rows = self.model.to_rows(self._samples) if self._samples is not None else None
        return ImportedModel(
            model=self.model,
            activations=tuple(self.activations),
            approximation_error=error,
            postprocess=postprocess,
            reference=reference,
            decides="largest" if len(edges) == 1 and edges[0].element_count > 1 else "value",
            samples=rows,
        )

    def _reference(self, samples: Samples) -> Array:
        """The graph's first output by onnx.reference, ``[n, elements]``."""
        rows = self.model.to_rows(samples)
        proto = self._onnx.ModelProto()
        proto.CopyFrom(self._proto)
        del proto.graph.output[:]
        proto.graph.output.append(
            self._onnx.helper.make_value_info(self._output_names[0], self._onnx.TypeProto())
        )
        nodes = self._needed_nodes()
        del proto.graph.node[:]
        proto.graph.node.extend(nodes)
        feeds: dict[str, npt.NDArray[Any]] = {}
        for one in self._proto.graph.input:
            if one.name not in self._input_names:
                continue
            dtype = self._onnx.helper.tensor_dtype_to_np_dtype(one.type.tensor_type.elem_type)
            edge = self._values[one.name]
            assert isinstance(edge, Edge)
            feeds[one.name] = rows[edge.name].reshape(-1, *edge.shape).astype(dtype)
        evaluator = self._onnx.reference.ReferenceEvaluator(proto)
        fixed = all(
            one.type.tensor_type.shape.dim[0].dim_value == 1
            for one in self._proto.graph.input
            if one.name in feeds
        )
        if fixed:  # a batch of one: item by item
            count = len(next(iter(feeds.values())))
            made = [
                np.asarray(
                    evaluator.run(None, {name: one[k : k + 1] for name, one in feeds.items()})[0]
                ).reshape(1, -1)
                for k in range(count)
            ]
            return np.concatenate(made).astype(np.float64)
        made_at_once = np.asarray(evaluator.run(None, feeds)[0], dtype=np.float64)
        return made_at_once.reshape(len(made_at_once), -1)


def _rename(samples: Samples | None, names: Mapping[str, str]) -> Samples | None:
    """Samples by the model's names of inputs, which may differ from the graph's."""
    if not isinstance(samples, Mapping):
        return samples
    return {names.get(name, name): array for name, array in samples.items()}


def _program_name(graph_name: str) -> str:
    return re.sub(r"[^a-z0-9_-]+", "_", graph_name.lower()).strip("_")[:64] or "model"
