"""Polynomials of one variable, and how a function becomes one.

Encrypted numbers can be added and multiplied, nothing else: an activation function is computed as a
polynomial that comes close to it over a range. The polynomial says how close.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from cipherd.errors import invalid_input

__all__ = ["ActivationFunction", "Polynomial", "fit"]

Array = npt.NDArray[np.float64]
ActivationFunction = Callable[[Array], Array]

# The fit sees so many points, and its error is measured over so many others.
_FITTED_POINTS = 4096
_MEASURED_POINTS = 20001


@dataclass(frozen=True)
class Polynomial:
    """Stands for a function on ``[lower, upper]``; beyond, it may be anything.

    ``basis="power"``: the sum of ``coefficients[k] * x**k``. ``"chebyshev"``: of ``coefficients[k]
    * T_k(t)``, where t goes from -1 to 1 as x goes from ``lower`` to ``upper``.
    """

    coefficients: tuple[float, ...]
    lower: float = -1.0
    upper: float = 1.0
    basis: Literal["power", "chebyshev"] = "power"

    @property
    def degree(self) -> int:
        """Degree; a program needs about log2(degree + 1) multiplications one after another."""
        return len(self.coefficients) - 1

    def __call__(self, x: npt.ArrayLike) -> Array:
        """Its values in float64."""
        numbers = np.asarray(x, dtype=np.float64)
        values: Any
        if self.basis == "power":
            values = np.polynomial.polynomial.polyval(numbers, self.coefficients)
        else:
            t = (2 * numbers - self.lower - self.upper) / (self.upper - self.lower)
            values = np.polynomial.chebyshev.chebval(t, self.coefficients)
        return np.asarray(values, dtype=np.float64)

    def largest_error(self, function: ActivationFunction) -> float:
        """How far it is from ``function`` on its range, at most."""
        x = np.linspace(self.lower, self.upper, _MEASURED_POINTS)
        return float(np.max(np.abs(self(x) - function(x))))


def fit(
    function: ActivationFunction,
    lower: float,
    upper: float,
    degree: int,
    *,
    density: npt.ArrayLike | Sequence[float] = (),
) -> Polynomial:
    """The polynomial of ``degree`` that is nearest to ``function`` on ``[lower, upper]``, in least
    squares.

    Half of the weight lies evenly over the range (at Chebyshev points, so that the largest error is
    near the least one possible). Where ``density`` has numbers that the polynomial will be given,
    the other half lies on them, so that it is better where it matters.
    """
    if not (math.isfinite(lower) and math.isfinite(upper) and lower < upper):
        raise invalid_input("range", f"expected two numbers, the lower first, got {lower}, {upper}")
    if not 1 <= degree <= 127:
        raise invalid_input("degree", f"expected 1 to 127, got {degree}")
    angles = (np.arange(_FITTED_POINTS) + 0.5) * (np.pi / _FITTED_POINTS)
    points = np.cos(angles)
    weights = np.full(_FITTED_POINTS, 1.0 / _FITTED_POINTS)
    seen = np.asarray(density, dtype=np.float64).ravel()
    if seen.size:
        counts, edges = np.histogram(np.clip(seen, lower, upper), bins=512, range=(lower, upper))
        centres = (edges[:-1] + edges[1:] - lower - upper) / (upper - lower)
        points = np.concatenate([points, centres])
        weights = np.concatenate([weights, counts / seen.size])
    x = (points * (upper - lower) + lower + upper) / 2
    root = np.sqrt(weights)
    basis = np.polynomial.chebyshev.chebvander(points, degree)
    solution, *_ = np.linalg.lstsq(basis * root[:, None], function(x) * root, rcond=None)
    return Polynomial(tuple(float(c) for c in solution), float(lower), float(upper), "chebyshev")
