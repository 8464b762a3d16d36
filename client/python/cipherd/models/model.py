"""A model: what is computed on the tensors of one item, before it is packed into ciphertexts.

    model = Model("iris")
    x = model.input("x", [4], lower=0, upper=8)
    z = model.linear(x, weight, bias)
    model.output("scores", z)
    planned = model.plan(samples)

Importers make one (:func:`cipherd.models.from_sklearn`, :func:`cipherd.models.from_onnx`); by hand
it is for what they do not know. It is the message ``cipherd.v1.Model`` of the repository, which
``cipherctl plan`` reads as well.
"""

from __future__ import annotations

import json
import math
import os
import pathlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeGuard, overload

import numpy as np
import numpy.typing as npt

from cipherd.errors import invalid_input
from cipherd.models import _safetensors
from cipherd.models.polynomial import Array, Polynomial

if TYPE_CHECKING:
    from cipherd.models.activations import Activation
    from cipherd.models.planned import PlannedProgram

__all__ = ["Edge", "Model", "Samples"]

Samples = npt.ArrayLike | Mapping[str, npt.ArrayLike]
Constant = npt.NDArray[np.float64] | npt.NDArray[np.int64]

_MOST_EDGE_NAME_CHARACTERS = 40


@dataclass(frozen=True)
class Edge:
    """A tensor of one item: an input, or what an operation makes."""

    name: str
    shape: tuple[int, ...]

    @property
    def element_count(self) -> int:
        """Numbers of one item."""
        return math.prod(self.shape)


@dataclass(frozen=True)
class Operation:
    """One operation, as the message has it: a kind, what it reads, and its attributes."""

    edge: Edge
    kind: str
    operands: tuple[Edge, ...]
    constants: dict[str, str] = field(default_factory=dict)
    """Name of a constant by field."""
    attributes: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """As the JSON of ``cipherd.v1.ModelOperation``."""
        operands = dict(zip("ab", (one.name for one in self.operands)))
        return {
            "name": self.edge.name,
            self.kind: {**operands, **self.constants, **self.attributes},
        }


@dataclass(frozen=True)
class ModelInput:
    """An input, with what its numbers are expected to be."""

    edge: Edge
    lower: float
    upper: float
    description: str


class Model:
    """Inputs, operations and outputs, each under a name of at most 40 letters, digits and ``_ .
    -``.

    Every method that adds an operation returns its edge, for others to read. Names are made up
    where none is given. What does not fit is refused when it is added, or at the latest by
    ``plan``: the C++ core checks it all.
    """

    def __init__(self, name: str, *, version: int = 1, description: str = "") -> None:
        self.name = name
        self.version = version
        self.description = description
        self.inputs: list[ModelInput] = []
        self.operations: list[Operation] = []
        self.outputs: dict[str, Edge] = {}
        self.constants: dict[str, Constant] = {}
        self._names: set[str] = set()

    def input(
        self,
        name: str,
        shape: Sequence[int],
        *,
        lower: float = -1.0,
        upper: float = 1.0,
        description: str = "",
    ) -> Edge:
        """An input of ``shape``, without the axis of items, whose numbers are in ``[lower,
        upper]``.
        """
        edge = self._new_edge(name, name, tuple(shape))
        self.inputs.append(ModelInput(edge, float(lower), float(upper), description))
        return edge

    def output(self, name: str, edge: Edge) -> None:
        """What a client decrypts: an edge that an operation makes."""
        if name in self.outputs:
            raise invalid_input(f"output '{name}'", "another output has this name already")
        self.outputs[name] = edge

    def linear(
        self,
        a: Edge,
        weight: npt.ArrayLike,
        bias: npt.ArrayLike | None = None,
        *,
        name: str | None = None,
    ) -> Edge:
        """``weight @ flatten(a) + bias``; weight ``[out, in]``, bias ``[out]``."""
        matrix = _numbers(weight)
        if matrix.ndim != 2 or matrix.shape[1] != a.element_count:
            raise invalid_input(
                name or "linear",
                f"weight: expected shape [out, {a.element_count}] for '{a.name}' of shape"
                f" {list(a.shape)}, got {list(matrix.shape)}",
            )
        constants = {"weight": matrix, "bias": None if bias is None else _numbers(bias).reshape(-1)}
        return self._add("linear", (a,), (matrix.shape[0],), name, constants)

    def conv2d(
        self,
        a: Edge,
        weight: npt.ArrayLike,
        bias: npt.ArrayLike | None = None,
        *,
        strides: tuple[int, int] = (1, 1),
        pads: tuple[int, int, int, int] = (0, 0, 0, 0),
        dilations: tuple[int, int] = (1, 1),
        groups: int = 1,
        name: str | None = None,
    ) -> Edge:
        """Cross-correlation, as frameworks have it: a ``[channels, h, w]``, weight ``[out, channels
        / groups, kh, kw]``.

        ``pads`` are top, left, bottom, right.
        """
        kernels = _numbers(weight)
        if len(a.shape) != 3 or kernels.ndim != 4:
            raise invalid_input(
                name or "conv2d",
                "expected an image [channels, height, width] and a weight of four axes, got"
                f" '{a.name}' of shape {list(a.shape)} and {list(kernels.shape)}",
            )
        size = tuple(
            _window_count(
                a.shape[1 + k], kernels.shape[2 + k], strides[k], dilations[k], pads[k], pads[2 + k]
            )
            for k in range(2)
        )
        constants = {
            "weight": kernels,
            "bias": None if bias is None else _numbers(bias).reshape(-1),
        }
        attributes = {
            "strides": list(strides),
            "pads": list(pads),
            "dilations": list(dilations),
            "groups": groups,
        }
        return self._add("conv2d", (a,), (kernels.shape[0], *size), name, constants, attributes)

    def average_pool2d(
        self,
        a: Edge,
        kernel: tuple[int, int],
        *,
        strides: tuple[int, int] = (1, 1),
        pads: tuple[int, int, int, int] = (0, 0, 0, 0),
        count_include_pad: bool = False,
        name: str | None = None,
    ) -> Edge:
        """Means over windows of an image ``[channels, height, width]``."""
        if len(a.shape) != 3:
            raise invalid_input(
                name or "average_pool2d",
                f"expected an image [channels, height, width], got '{a.name}' of shape"
                f" {list(a.shape)}",
            )
        size = tuple(
            _window_count(a.shape[1 + k], kernel[k], strides[k], 1, pads[k], pads[2 + k])
            for k in range(2)
        )
        attributes = {
            "kernel": list(kernel),
            "strides": list(strides),
            "pads": list(pads),
            "count_include_pad": count_include_pad,
        }
        return self._add("average_pool2d", (a,), (a.shape[0], *size), name, {}, attributes)

    def add(self, a: Edge, b: Edge, *, name: str | None = None) -> Edge:
        """``a + b``, of one shape."""
        return self._binary("add", a, b, name)

    def subtract(self, a: Edge, b: Edge, *, name: str | None = None) -> Edge:
        """``a - b``, of one shape."""
        return self._binary("subtract", a, b, name)

    def multiply(self, a: Edge, b: Edge, *, name: str | None = None) -> Edge:
        """``a * b``, of one shape."""
        return self._binary("multiply", a, b, name)

    def negate(self, a: Edge, *, name: str | None = None) -> Edge:
        """``-a``."""
        return self._add("negate", (a,), a.shape, name)

    def square(self, a: Edge, *, name: str | None = None) -> Edge:
        """``a * a``."""
        return self._add("square", (a,), a.shape, name)

    def add_constant(self, a: Edge, constant: npt.ArrayLike, *, name: str | None = None) -> Edge:
        """``a + constant``, which broadcasts to the shape of ``a``."""
        return self._with_constant("add_constant", a, constant, name)

    def multiply_constant(
        self, a: Edge, constant: npt.ArrayLike, *, name: str | None = None
    ) -> Edge:
        """``a * constant``, which broadcasts to the shape of ``a``."""
        return self._with_constant("multiply_constant", a, constant, name)

    def polynomial(self, a: Edge, polynomial: Polynomial, *, name: str | None = None) -> Edge:
        """A polynomial of each number."""
        attributes = {
            "basis": f"BASIS_{polynomial.basis.upper()}",
            "coefficients": list(polynomial.coefficients),
            "lower": polynomial.lower,
            "upper": polynomial.upper,
        }
        return self._add("polynomial", (a,), a.shape, name, {}, attributes)

    def sum(
        self,
        a: Edge,
        axes: Sequence[int] = (),
        *,
        keep_axes: bool = False,
        name: str | None = None,
    ) -> Edge:
        """The sum over ``axes``, over all where none are given; ``keep_axes`` leaves them with one
        element.
        """
        rank = len(a.shape)
        summed = {axis % rank for axis in axes} if axes else set(range(rank))
        shape = tuple(
            1 if axis in summed else size
            for axis, size in enumerate(a.shape)
            if keep_axes or axis not in summed
        )
        return self._add(
            "sum", (a,), shape, name, {}, {"axes": sorted(summed), "keep_axes": keep_axes}
        )

    def reshape(self, a: Edge, shape: Sequence[int], *, name: str | None = None) -> Edge:
        """The same numbers in another shape; one of its sizes may be -1, for what is left."""
        sizes = list(shape)
        if sizes.count(-1) == 1:
            known = math.prod(size for size in sizes if size != -1)
            sizes[sizes.index(-1)] = a.element_count // max(known, 1)
        if math.prod(sizes) != a.element_count or any(size < 1 for size in sizes):
            raise invalid_input(
                name or "reshape",
                f"shape {list(shape)} does not hold the {a.element_count} numbers of '{a.name}'",
            )
        return self._add("reshape", (a,), tuple(sizes), name, {}, {"shape": sizes})

    def select(self, a: Edge, indices: npt.ArrayLike, *, name: str | None = None) -> Edge:
        """``flatten(a)[indices]``, in any order and as often as one likes."""
        chosen = np.asarray(indices, dtype=np.int64).reshape(-1)
        return self._add("select", (a,), (len(chosen),), name, {"indices": chosen})

    @overload
    def evaluate(self, samples: Mapping[str, npt.ArrayLike]) -> dict[str, Array]: ...
    @overload
    def evaluate(self, samples: npt.ArrayLike) -> Array: ...
    def evaluate(self, samples: Samples) -> Array | dict[str, Array]:
        """The outputs in float64 by NumPy: what encrypted evaluation is to come close to.

        Args:
            samples: For a model with one input and one output, an array ``[n, ...]``; the result is
                the output's array ``[n, ...]``. Else, or as one likes, a dict of such by name; the
                result is one too.
        """
        from cipherd.models.evaluation import Evaluation

        evaluation = Evaluation(self, samples)
        outputs = {name: evaluation.values(edge) for name, edge in self.outputs.items()}
        return outputs if isinstance(samples, Mapping) else self.one_output(outputs)

    def one_output(self, outputs: dict[str, Array]) -> Array:
        """The output of a model that has one."""
        if len(outputs) == 1:
            return next(iter(outputs.values()))
        names = ", ".join(f"'{name}'" for name in outputs)
        raise invalid_input(
            "samples", f"the model has several outputs ({names}): give a dict, and get one"
        )

    def plan(
        self,
        samples: Samples | None = None,
        *,
        max_error: float = 1e-4,
        device: str = "cpu",
        margin: float = 2.0,
        encrypted_samples: int = 1024,
        min_items: int = 1,
        log2_scale: int | None = None,
        max_log_n: int = 16,
        activations: Sequence[Activation] = (),
    ) -> PlannedProgram:
        """Makes a program of the model, and measures it on encrypted samples in this process.

        Chooses packing, context, keys, depths and scales. Takes seconds, or minutes for large
        models.

        Args:
            samples: Typical items, as training data; magnitudes and errors are measured over them.
                Made at random within the bounds of the inputs unless given.
            max_error: Absolute error that outputs are to keep; a larger one makes faster programs.
            device: Where times are measured: ``"cpu"``; ``"cuda:0"`` where the package was built
                with CUDA.
            margin: Later numbers may be so many times as large as those of the samples, and ranges
                of inputs so many times as wide; sessions refuse items beyond.
            encrypted_samples: Samples that are encrypted, at most; all count for magnitudes.
            min_items: Items that share a ciphertext, at least.
            log2_scale: The scale, in place of what ``max_error`` asks for.
            max_log_n: Largest ring degree, as a power of 2.
            activations: For the summary: the polynomials that stand for something else.

        Raises:
            InvalidInputError: The model cannot be computed, or samples do not fit it.
            LimitExceededError: No secure context is large enough: fewer layers, activations of a
                lower degree, or a larger ``max_error`` help.
        """
        from cipherd.models.planned import plan_model

        return plan_model(
            self,
            samples,
            max_error=max_error,
            device=device,
            margin=margin,
            encrypted_samples=encrypted_samples,
            min_items=min_items,
            log2_scale=log2_scale,
            max_log_n=max_log_n,
            activations=activations,
        )

    def to_rows(self, samples: Samples) -> dict[str, Array]:
        """Samples by name of their input, one contiguous row of float64 an item."""
        expected = [one.edge for one in self.inputs]
        if isinstance(samples, Mapping):
            named: Mapping[str, npt.ArrayLike] = samples
        elif len(expected) == 1:
            named = {expected[0].name: samples}
        else:
            names = ", ".join(f"'{edge.name}'" for edge in expected)
            raise invalid_input(
                "samples", f"expected a dict with {names}, got {type(samples).__name__}"
            )
        rows: dict[str, Array] = {}
        for edge in expected:
            if edge.name not in named:
                raise invalid_input(f"samples['{edge.name}']", "missing")
            array = np.asarray(named[edge.name], dtype=np.float64)
            if array.ndim == 0 or array.size != len(array) * edge.element_count or array.size == 0:
                raise invalid_input(
                    f"samples['{edge.name}']",
                    f"expected shape {['n', *edge.shape]}, got {list(array.shape)}",
                )
            rows[edge.name] = np.ascontiguousarray(array.reshape(len(array), -1))
        if len({len(one) for one in rows.values()}) > 1:
            counts = {name: len(one) for name, one in rows.items()}
            raise invalid_input("samples", f"expected as many items of each input, got {counts}")
        return rows

    def to_json(self, *, constants_file: str | None = None) -> str:
        """The JSON of ``cipherd.v1.Model``, with its constants, or with the name of the file that
        has them.
        """
        message: dict[str, Any] = {
            "name": self.name,
            "version": self.version,
            "description": self.description,
            "inputs": [
                {
                    "name": one.edge.name,
                    "shape": list(one.edge.shape),
                    "lower": one.lower,
                    "upper": one.upper,
                    "description": one.description,
                }
                for one in self.inputs
            ],
            "operations": [one.to_json() for one in self.operations],
            "outputs": [{"name": name, "edge": edge.name} for name, edge in self.outputs.items()],
        }
        if constants_file is not None:
            message["constants_file"] = constants_file
        else:
            message["constants"] = [
                _constant_json(name, one) for name, one in self.constants.items()
            ]
        return json.dumps(message, allow_nan=False)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes ``path`` (.json), and the constants beside it (.safetensors), for ``cipherctl
        plan``.
        """
        file = pathlib.Path(path)
        constants = file.with_suffix(".safetensors")
        constants.write_bytes(_safetensors.encode(self.constants))
        file.write_text(self.to_json(constants_file=constants.name), encoding="utf-8")

    def unused_name(self, wanted: str) -> str:
        """A name for an edge that is like ``wanted``: lawful, and not taken."""
        lawful = "".join(c if c.isascii() and (c.isalnum() or c in "_.-") else "." for c in wanted)
        base = lawful.strip(".")[-_MOST_EDGE_NAME_CHARACTERS:].strip(".") or "edge"
        name, count = base, 1
        while name in self._names:
            count += 1
            name = f"{base[: _MOST_EDGE_NAME_CHARACTERS - 6]}.{count}"
        return name

    def _new_edge(self, name: str | None, kind: str, shape: tuple[int, ...]) -> Edge:
        if name is None:
            name = self.unused_name(kind)
        if name in self._names:
            raise invalid_input(f"'{name}'", "another input or operation has this name already")
        self._names.add(name)
        return Edge(name, tuple(int(size) for size in shape))

    def _add(
        self,
        kind: str,
        operands: tuple[Edge, ...],
        shape: tuple[int, ...],
        name: str | None,
        constants: Mapping[str, Constant | None] | None = None,
        attributes: dict[str, Any] | None = None,
    ) -> Edge:
        for operand in operands:
            if operand.name not in self._names:
                raise invalid_input(name or kind, f"'{operand.name}' is not an edge of this model")
        edge = self._new_edge(name, kind, shape)
        named: dict[str, str] = {}
        for role, constant in (constants or {}).items():
            if constant is None:
                continue
            named[role] = f"{edge.name}.{role}"
            self.constants[named[role]] = constant
        self.operations.append(Operation(edge, kind, operands, named, attributes or {}))
        return edge

    def _binary(self, kind: str, a: Edge, b: Edge, name: str | None) -> Edge:
        if a.shape != b.shape:
            raise invalid_input(
                name or kind,
                f"expected two of one shape, got '{a.name}' of {list(a.shape)} and '{b.name}' of"
                f" {list(b.shape)}",
            )
        return self._add(kind, (a, b), a.shape, name)

    def _with_constant(self, kind: str, a: Edge, constant: npt.ArrayLike, name: str | None) -> Edge:
        numbers = _numbers(constant)
        try:
            fits = np.broadcast_shapes(numbers.shape, a.shape) == a.shape
        except ValueError:
            fits = False
        if not fits:
            raise invalid_input(
                name or kind,
                f"a constant of shape {list(numbers.shape)} does not broadcast to '{a.name}' of"
                f" {list(a.shape)}",
            )
        return self._add(kind, (a,), a.shape, name, {"constant": numbers})


def is_numbers(constant: Constant) -> TypeGuard[Array]:
    """Whether a constant is of float64; others are indices."""
    return constant.dtype == np.float64


def _numbers(given: npt.ArrayLike) -> Array:
    return np.ascontiguousarray(given, dtype=np.float64).reshape(np.shape(given)).copy()


def _window_count(
    size: int, kernel: int, stride: int, dilation: int, before: int, after: int
) -> int:
    return (size + before + after - ((kernel - 1) * dilation + 1)) // stride + 1


def _constant_json(name: str, constant: Constant) -> dict[str, Any]:
    values = "values" if is_numbers(constant) else "integers"
    return {"name": name, "shape": list(constant.shape), values: constant.ravel().tolist()}
