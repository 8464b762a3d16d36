"""A program that was made of a model, as it was measured."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
import numpy.typing as npt

from cipherd import _cipherd
from cipherd.errors import LimitExceededError
from cipherd.models.activations import Activation
from cipherd.models.model import Model, Samples, is_numbers
from cipherd.models.polynomial import Array

__all__ = ["OutputErrors", "PlannedProgram"]


@dataclass(frozen=True)
class OutputErrors:
    """Decrypted numbers of an output against the model in float64, over the samples that were
    encrypted.
    """

    largest: float
    root_mean_square: float
    element_count: int
    """Numbers that were compared."""


class PlannedProgram:
    """A program for a daemon, from :meth:`Model.plan`: context, keys and schedule are chosen,
    precision is measured.

        print(planned.summary)
        planned.evaluate(samples)               # encrypted, in this process: a first look
        planned.write("programs/iris")          # for `cipherd --programs programs`

    ``evaluate`` may be called by several threads; they take turns.
    """

    def __init__(
        self, model: Model, planned: _cipherd.PlannedModel, activations: Sequence[Activation] = ()
    ) -> None:
        self._model = model
        self._planned = planned
        self._activations = tuple(activations)

    @property
    def model(self) -> Model:
        """What it was made of."""
        return self._model

    @property
    def name(self) -> str:
        """The program's name, that of the model."""
        return self._model.name

    @property
    def summary(self) -> str:
        """A table: context, items, keys, bytes, times; then the polynomials in place of
        activations, and how far these are off.
        """
        return self._planned.summary + "".join(f"{one}\n" for one in self._activations)

    @property
    def schedule(self) -> str:
        """A table with a row an operation: what it reads, depth, scale, rotations, time."""
        return self._planned.schedule

    @property
    def graph(self) -> str:
        """The schedule in Graphviz's language, for ``dot -Tsvg``."""
        return self._planned.graph

    @property
    def errors(self) -> dict[str, OutputErrors]:
        """Measured errors by output. The program states them too."""
        return {name: OutputErrors(*one) for name, one in self._planned.errors.items()}

    @property
    def largest_error(self) -> float:
        """The largest measured error of any output."""
        return self._planned.measured_error

    @property
    def estimated_error(self) -> float:
        """What was estimated before."""
        return self._planned.estimated_error

    @property
    def sample_count(self) -> int:
        """Samples that were encrypted."""
        return self._planned.sample_count

    @property
    def predicted_seconds(self) -> float:
        """Time of one evaluation on the device, of its operations measured one by one."""
        return self._planned.predicted_seconds

    @property
    def measured_seconds(self) -> float:
        """Time of one evaluation on the device: the median over the samples' ciphertexts."""
        return self._planned.measured_seconds

    @property
    def item_count(self) -> int:
        """Items that share a ciphertext: so many are evaluated at once."""
        return self._planned.item_count

    @property
    def required_keys(self) -> tuple[str, ...]:
        """The evaluation keys that it reads, as ``"relinearization"``, ``"rotation(64)"``."""
        return tuple(self._planned.required_keys)

    @property
    def key_bytes(self) -> int:
        """Bytes of these keys, which a client uploads once."""
        return self._planned.key_bytes

    @property
    def input_bytes(self) -> int:
        """Bytes of the encrypted inputs of one request."""
        return self._planned.input_bytes

    @property
    def output_bytes(self) -> int:
        """Bytes of the encrypted outputs of one request."""
        return self._planned.output_bytes

    @property
    def constant_bytes(self) -> int:
        """Memory that a daemon's device takes for the constants; or it streams them, through twice
        ``largest_constant_bytes`` at least (``constant_memory_bytes`` of ``serving.textproto``).
        """
        return self._planned.constant_bytes

    @property
    def largest_constant_bytes(self) -> int:
        """The part of ``constant_bytes`` that one operation reads, at most."""
        return self._planned.largest_constant_bytes

    @overload
    def evaluate(self, samples: Mapping[str, npt.ArrayLike]) -> dict[str, Array]: ...
    @overload
    def evaluate(self, samples: npt.ArrayLike) -> Array: ...
    def evaluate(self, samples: Samples) -> Array | dict[str, Array]:
        """Encrypts, evaluates and decrypts in this process, under keys that are made here: no
        daemon.

        Returns:
            Arrays ``[n, elements]``, as a session's. A dict goes in and comes out where the model
            has several inputs or outputs.
        """
        outputs = self._planned.evaluate(self._model.to_rows(samples))
        return outputs if isinstance(samples, Mapping) else self._model.one_output(outputs)

    def write(self, directory: str | os.PathLike[str]) -> None:
        """Writes the program for a daemon: ``directory`` appears, and its last part is the
        program's name.

        Raises:
            AlreadyExistsError: There is something of that name.
            InvalidInputError: The directory is not called as the program (or its version).
        """
        self._planned.write(os.fspath(directory))

    def __repr__(self) -> str:
        return (
            f"<cipherd.models.PlannedProgram {self.name}: {self.item_count} items in "
            f"{self.measured_seconds * 1e3:.3g} ms, errors up to {self.largest_error:.2g}>"
        )


def plan_model(
    model: Model,
    samples: Samples | None,
    *,
    max_error: float,
    device: str,
    margin: float,
    encrypted_samples: int,
    min_items: int,
    log2_scale: int | None,
    max_log_n: int,
    activations: Sequence[Activation],
) -> PlannedProgram:
    """:meth:`Model.plan`."""
    planned = _cipherd.plan_model(
        model.to_json(constants_file="constants.safetensors"),
        {name: one for name, one in model.constants.items() if is_numbers(one)},
        {
            name: np.asarray(one, np.int64)
            for name, one in model.constants.items()
            if not is_numbers(one)
        },
        {} if samples is None else model.to_rows(samples),
        device,
        max_error,
        margin,
        encrypted_samples,
        min_items,
        log2_scale,
        max_log_n,
    )
    if log2_scale is None and planned.measured_error > max_error:
        raise LimitExceededError(
            f"max_error: expected at least {planned.measured_error:.2g}, which was measured, got"
            f" {max_error:.2g}",
            code="RESOURCE_EXHAUSTED",
            path="max_error",
        )
    return PlannedProgram(model, planned, activations)
