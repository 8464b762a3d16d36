"""Named arrays as a safetensors file: the length of a JSON header, the header, the numbers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

_DTYPES = {"float64": "F64", "int64": "I64"}
# Of the first array's bytes.
_ALIGNMENT = 8


def encode(arrays: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """The file's bytes."""
    header: dict[str, Any] = {}
    parts: list[bytes] = []
    offset = 0
    for name, array in arrays.items():
        numbers = np.ascontiguousarray(array)
        data = numbers.astype(numbers.dtype.newbyteorder("<"), copy=False).tobytes()
        header[name] = {
            "dtype": _DTYPES[numbers.dtype.name],
            "shape": list(array.shape),
            "data_offsets": [offset, offset + len(data)],
        }
        offset += len(data)
        parts.append(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    return len(text).to_bytes(8, "little") + text + b"".join(parts)
