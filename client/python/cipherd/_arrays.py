"""What users give to what the extension takes: one contiguous row of float64 an item."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cipherd.errors import InvalidInputError, invalid_input
from cipherd.program import Input, Program

Array: TypeAlias = npt.NDArray[np.float64]
ArrayLike: TypeAlias = npt.ArrayLike


@dataclass(frozen=True)
class Rows:
    """Inputs of an evaluation, and how its outputs are to look."""

    inputs: dict[str, Array]
    is_mapping: bool
    """Inputs came by name: outputs go by name."""
    is_one_item: bool
    """Every input was one item without its axis: outputs lose theirs."""

    def shape_outputs(self, outputs: dict[str, Array]) -> dict[str, Array]:
        """Outputs by name, without the axis of items where the inputs had none."""
        if not self.is_one_item:
            return outputs
        return {name: rows[0] if len(rows) == 1 else rows for name, rows in outputs.items()}


def to_rows(
    program: Program, inputs: ArrayLike | Mapping[str, ArrayLike], *, by_part: bool = False
) -> Rows:
    """Checks names, types and shapes.

    ``by_part``: outputs go by name in any case, so that an array will do for the only input.

    Raises InvalidInputError naming the input, what was expected and what was given.
    """
    is_mapping = isinstance(inputs, Mapping)
    named = _by_name(program, inputs, by_part)
    rows: dict[str, Array] = {}
    had_items: list[bool] = []
    for one in program.inputs:
        array = _to_float64(f"inputs['{one.name}']", named[one.name])
        had_items.append(array.ndim == 2)
        rows[one.name] = _to_items(one, array)
    return Rows(rows, is_mapping, is_one_item=not any(had_items))


def one_output(program: Program, outputs: dict[str, Array]) -> Array:
    """The output of a program that has one."""
    if len(program.outputs) != 1:
        names = ", ".join(one.name for one in program.outputs)
        raise invalid_input(
            "inputs",
            f"program '{program.name}' has several outputs ({names}): give a dict, and get one",
        )
    return outputs[program.outputs[0].name]


def _by_name(program: Program, inputs: Any, by_part: bool) -> Mapping[str, ArrayLike]:
    expected = [one.name for one in program.inputs]
    if not isinstance(inputs, Mapping):
        if len(expected) == 1 and (by_part or len(program.outputs) == 1):
            return {expected[0]: inputs}
        names = ", ".join(f"'{name}': ..." for name in expected)
        raise invalid_input(
            "inputs",
            f"program '{program.name}' has {len(expected)} inputs and {len(program.outputs)} "
            f"outputs: expected a dict {{{names}}}, got {type(inputs).__name__}",
        )
    for name in inputs:
        if name not in expected:
            raise invalid_input(
                f"inputs[{name!r}]",
                f"program '{program.name}' has no such input, expected {expected}",
            )
    for name in expected:
        if name not in inputs:
            raise invalid_input(f"inputs['{name}']", "missing")
    return inputs


def _to_float64(path: str, given: ArrayLike) -> npt.NDArray[Any]:
    try:
        array = np.asarray(given)
    except ValueError as error:  # rows of different lengths
        raise _wrong_type(path, "rows of different lengths") from error
    if array.dtype.kind not in "fiub":
        hint = "; numbers in strings become numbers by .astype(float)" if array.dtype.kind in "USO" else ""
        raise _wrong_type(path, f"dtype {array.dtype}{hint}")
    return np.ascontiguousarray(array, dtype=np.float64) if array.ndim else array


def _wrong_type(path: str, actual: str) -> InvalidInputError:
    return invalid_input(path, f"expected an array of real numbers, got {actual}")


def _to_items(one: Input, array: npt.NDArray[Any]) -> Array:
    count = one.layout.element_count
    if array.ndim == 1 and len(array) == count:
        return array.reshape(1, count)
    if array.ndim == 2 and array.shape[1] == count and len(array) > 0:
        return array
    raise invalid_input(
        f"inputs['{one.name}']",
        f"expected shape [n, {count}] with n >= 1, or [{count}] for one item, "
        f"got {list(array.shape)}",
    )
