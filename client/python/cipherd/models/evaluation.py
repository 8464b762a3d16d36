"""Models in float64 by NumPy: for ranges of activations while one is built, and to compare with.

The C++ core has one of its own; this one shares nothing with it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cipherd.models.model import Edge, Model, Operation, Samples
from cipherd.models.polynomial import Array, Polynomial

__all__ = ["Evaluation"]


class Evaluation:
    """Values of a model's edges over samples, each computed once; operations may be added
    meanwhile.

    evaluation = Evaluation(model, samples)
    evaluation.values(edge)                     # [n, *edge.shape]
    """

    def __init__(self, model: Model, samples: Samples) -> None:
        self._model = model
        rows = model.to_rows(samples)
        self._values: dict[str, Array] = {
            one.edge.name: rows[one.edge.name].reshape(-1, *one.edge.shape) for one in model.inputs
        }
        self._done = 0

    def values(self, edge: Edge) -> Array:
        """Of the samples, in their order: ``[n, *edge.shape]``."""
        while edge.name not in self._values:
            operation = self._model.operations[self._done]
            self._values[operation.edge.name] = self._apply(operation)
            self._done += 1
        return self._values[edge.name]

    def _apply(self, operation: Operation) -> Array:
        operands = [self._values[one.name] for one in operation.operands]
        constants = {
            role: self._model.constants[name] for role, name in operation.constants.items()
        }
        made = _RULES[operation.kind](*operands, **constants, **operation.attributes)
        return np.asarray(made, dtype=np.float64).reshape(len(operands[0]), *operation.edge.shape)


def _linear(a: Array, weight: Array, bias: Array | None = None) -> Array:
    made = a.reshape(len(a), -1) @ weight.T
    return made if bias is None else made + bias


def _windows(
    a: Array, kernel: list[int], strides: list[int], pads: list[int], dilations: list[int]
) -> Array:
    """[n, channels, height, width, kernel height, kernel width]."""
    padded = np.pad(a, ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])))
    reach = [(size - 1) * dilation + 1 for size, dilation in zip(kernel, dilations)]
    windows = np.lib.stride_tricks.sliding_window_view(padded, reach, axis=(2, 3))
    return windows[:, :, :: strides[0], :: strides[1], :: dilations[0], :: dilations[1]]


def _conv2d(
    a: Array,
    weight: Array,
    bias: Array | None = None,
    *,
    strides: list[int],
    pads: list[int],
    dilations: list[int],
    groups: int,
) -> Array:
    windows = _windows(a, list(weight.shape[2:]), strides, pads, dilations)
    inputs = np.split(windows, groups, axis=1)
    kernels = np.split(weight, groups, axis=0)
    made = np.concatenate(
        [
            np.einsum("nchwij,ocij->nohw", one, kernel, optimize=True)
            for one, kernel in zip(inputs, kernels)
        ],
        axis=1,
    )
    return made if bias is None else made + bias[:, None, None]


def _average_pool2d(
    a: Array, *, kernel: list[int], strides: list[int], pads: list[int], count_include_pad: bool
) -> Array:
    def sums(image: Array) -> Array:
        return np.asarray(_windows(image, kernel, strides, pads, [1, 1]).sum(axis=(4, 5)))

    counts = np.float64(kernel[0] * kernel[1]) if count_include_pad else sums(np.ones_like(a))
    return np.asarray(sums(a) / counts)


def _polynomial(
    a: Array, *, basis: str, coefficients: list[float], lower: float, upper: float
) -> Array:
    is_power = basis == "BASIS_POWER"
    return Polynomial(tuple(coefficients), lower, upper, "power" if is_power else "chebyshev")(a)


def _sum(a: Array, *, axes: list[int], keep_axes: bool) -> Array:
    return np.asarray(a.sum(axis=tuple(axis + 1 for axis in axes), keepdims=keep_axes))


_RULES: dict[str, Callable[..., Any]] = {
    "linear": _linear,
    "conv2d": _conv2d,
    "average_pool2d": _average_pool2d,
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "negate": lambda a: -a,
    "square": lambda a: a * a,
    "add_constant": lambda a, constant: a + constant,
    "multiply_constant": lambda a, constant: a * constant,
    "polynomial": _polynomial,
    "sum": _sum,
    "reshape": lambda a, shape: a,
    "select": lambda a, indices: a.reshape(len(a), -1)[:, indices],
}
