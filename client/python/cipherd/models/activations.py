"""Activation functions that importers know, and the polynomials that they became."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from cipherd.errors import invalid_input
from cipherd.models.model import Edge, Model
from cipherd.models.polynomial import ActivationFunction, Array, Polynomial, fit

__all__ = ["Activation", "ActivationRange", "FUNCTIONS", "add_activation"]

ActivationRange: TypeAlias = tuple[float, float]


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)), for numbers of any size."""
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * x)))


FUNCTIONS: dict[str, ActivationFunction] = {
    "relu": lambda x: np.maximum(x, 0.0),
    "sigmoid": sigmoid,
    "tanh": lambda x: np.tanh(x),
    "softplus": lambda x: np.logaddexp(x, 0.0),
    "gelu": lambda x: np.asarray(0.5 * x * (1.0 + np.vectorize(math.erf)(x / math.sqrt(2.0)))),
}


@dataclass(frozen=True)
class Activation:
    """An activation function of the original and what stands for it in the model."""

    edge: str
    """The model's edge that it makes."""
    function: str
    """What it was, as ``"relu"``."""
    polynomial: Polynomial
    largest_error: float
    """How far the polynomial is from the function, at most, over the polynomial's range."""

    def __str__(self) -> str:
        one = self.polynomial
        return (
            f"{self.edge}: {self.function} as a polynomial of degree {one.degree} over "
            f"[{one.lower:.4g}, {one.upper:.4g}], errors up to {self.largest_error:.2g}"
        )


def measured_range(values: npt.ArrayLike, margin: float) -> ActivationRange:
    """What ``values`` take, widened: ``margin`` times as wide around the middle."""
    numbers = np.asarray(values, dtype=np.float64)
    lower, upper = float(numbers.min()), float(numbers.max())
    half = (upper - lower) / 2 * margin
    if half < 1e-6 * max(1.0, abs(lower)):
        half = max(1.0, abs(lower))
    middle = (lower + upper) / 2
    return middle - half, middle + half


def add_activation(
    model: Model,
    a: Edge,
    function_name: str,
    function: ActivationFunction,
    *,
    name: str,
    degree: int,
    stated: ActivationRange | None,
    values: Array | None,
    margin: float,
) -> tuple[Edge, Activation]:
    """Adds ``function`` of ``a`` as a polynomial over the range that is stated, else measured of
    ``values``.
    """
    if stated is not None:
        lower, upper = float(stated[0]), float(stated[1])
        density: Array | Sequence[float] = ()
    elif values is not None:
        lower, upper = measured_range(values, margin)
        density = values
    else:
        raise invalid_input(
            f"activation '{name}'",
            f"{function_name} becomes a polynomial over the range of the numbers that it is given:"
            " pass samples (as training data), over which it is measured, or"
            " activation_range=(lower, upper)",
        )
    polynomial = fit(function, lower, upper, degree, density=density)
    edge = model.polynomial(a, polynomial, name=name)
    return edge, Activation(
        edge.name, function_name, polynomial, polynomial.largest_error(function)
    )
