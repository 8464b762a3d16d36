"""safetensors files: 8 bytes of header length, a JSON header, the tensors.

Equal arrays give equal bytes: tensors stand in the order of their names, and the header is padded
with spaces so that the data begins at a multiple of 8.
"""

import json
import struct

import numpy as np

_DTYPES = {"float64": "F64", "float32": "F32", "int64": "I64", "int32": "I32"}


def write(path, arrays):
    """Writes {name: array} to `path`."""
    header = {}
    offset = 0
    chunks = []
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        chunk = array.astype(array.dtype.newbyteorder("<")).tobytes()
        header[name] = {
            "dtype": _DTYPES[array.dtype.name],
            "shape": list(array.shape),
            "data_offsets": [offset, offset + len(chunk)],
        }
        chunks.append(chunk)
        offset += len(chunk)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)))
        file.write(text)
        for chunk in chunks:
            file.write(chunk)


def read(path):
    """Returns {name: array} of `path`."""
    with open(path, "rb") as file:
        content = file.read()
    start = 8 + struct.unpack_from("<Q", content)[0]
    dtypes = {code: np.dtype(name).newbyteorder("<") for name, code in _DTYPES.items()}
    arrays = {}
    for name, tensor in json.loads(content[8:start]).items():
        if name == "__metadata__":
            continue
        begin, end = (start + offset for offset in tensor["data_offsets"])
        numbers = np.frombuffer(content[begin:end], dtypes[tensor["dtype"]])
        arrays[name] = numbers.reshape(tensor["shape"])
    return arrays
