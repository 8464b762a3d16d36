"""What importers return: a model, how well it stands for the original, and how its outputs are
read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from cipherd.errors import Error, invalid_input
from cipherd.models.activations import Activation
from cipherd.models.model import Model, Samples
from cipherd.models.planned import PlannedProgram
from cipherd.models.polynomial import Array

__all__ = ["Agreement", "ImportedModel", "UnsupportedModelError"]


class UnsupportedModelError(Error, ValueError):
    """The original has a part that encrypted evaluation does not have; the message says what to do
    instead.
    """

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message, **{"code": "INVALID_ARGUMENT", **details})


@dataclass(frozen=True)
class Agreement:
    """Decrypted outputs against the original, over samples."""

    sample_count: int
    largest_error: float
    """The largest difference of a score."""
    stated_error: float
    """Up to which scores were expected to differ."""
    different: int
    """Samples whose prediction is another."""
    within_error: int
    """Of these, those that the original decides so narrowly that the stated error explains it."""

    @property
    def holds(self) -> bool:
        """Whether every prediction is the original's, but for those within the stated error."""
        return self.different == self.within_error

    def __str__(self) -> str:
        return (
            f"{self.sample_count} samples: errors up to {self.largest_error:.2g} (stated:"
            f" {self.stated_error:.2g}), {self.different} predictions differ, {self.within_error}"
            " of them within the stated error"
        )


@dataclass(frozen=True)
class ImportedModel:
    """A model that was made of another, from :func:`from_sklearn` or :func:`from_onnx`.

    imported = from_sklearn(pipeline, samples=X_train)
    planned = imported.plan(max_error=1e-3)
    scores = planned.evaluate(X_test)            # or a session's evaluate
    labels = imported.postprocess(scores)
    print(imported.agreement(X_test, scores, planned))
    """

    model: Model
    activations: tuple[Activation, ...]
    """Functions that became polynomials: the ranges they were made for, and their errors."""
    approximation_error: float
    """By how much scores of the model differ from the original's over the samples, at most; 0
    without samples.
    """
    postprocess: Callable[[npt.ArrayLike], npt.NDArray[Any]]
    """From decrypted outputs ``[n, elements]`` to what the original predicts. It runs where the
    secret key is.
    """
    reference: Callable[[npt.ArrayLike], Array] = field(repr=False)
    """The original's own outputs, in float64: what decrypted ones stand for."""
    decides: str = field(repr=False)
    """How predictions come of scores: ``"largest"``, ``"sign"``, or ``"value"``, which is the
    number itself.
    """
    threshold: float = field(default=0.0, repr=False)
    """With ``"sign"``: where the decision changes."""
    samples: Samples | None = field(default=None, repr=False)
    """What ranges were measured over; ``plan`` takes them too."""

    def plan(self, samples: Samples | None = None, **options: Any) -> PlannedProgram:
        """:meth:`Model.plan`, over the samples of the import unless others are given."""
        return self.model.plan(
            self.samples if samples is None else samples,
            **{"activations": self.activations, **options},
        )

    def scores(self, samples: npt.ArrayLike) -> Array:
        """The outputs in float64, polynomials in place of activations: ``[n, elements]``."""
        made = self.model.evaluate(samples)
        return made.reshape(len(made), -1)

    def agreement(
        self, samples: npt.ArrayLike, scores: npt.ArrayLike, planned: PlannedProgram | float = 0.0
    ) -> Agreement:
        """Compares decrypted ``scores`` of ``samples`` with the original.

        Predictions are expected to be equal, except where the original's own margin (the largest
        score less the second, or the distance from the threshold) is below the stated error:
        ``approximation_error``, and four times the error that was measured of ``planned`` (or given
        as a number): other keys and other items have other noise.
        """
        actual = np.asarray(scores, dtype=np.float64)
        actual = actual.reshape(len(actual), -1)
        expected = self.reference(samples).reshape(len(actual), -1)
        if actual.shape != expected.shape:
            raise invalid_input(
                "scores", f"expected shape {list(expected.shape)}, got {list(actual.shape)}"
            )
        encryption_error = planned.largest_error if isinstance(planned, PlannedProgram) else planned
        stated = self.approximation_error + 4 * encryption_error
        if self.decides == "largest":
            ordered = np.sort(expected, axis=1)
            # Two scores may differ, one down and one up.
            narrow = ordered[:, -1] - ordered[:, -2] <= 2 * stated
            different = actual.argmax(axis=1) != expected.argmax(axis=1)
        elif self.decides == "sign":
            flipped = (actual > self.threshold) != (expected > self.threshold)
            different = flipped.any(axis=1)
            narrow = ~(flipped & (np.abs(expected - self.threshold) > stated)).any(axis=1)
        else:
            different = (np.abs(actual - expected) > stated).any(axis=1)
            narrow = np.zeros(len(actual), dtype=bool)
        return Agreement(
            sample_count=len(actual),
            largest_error=float(np.abs(actual - expected).max()),
            stated_error=stated,
            different=int(different.sum()),
            within_error=int((different & narrow).sum()),
        )
