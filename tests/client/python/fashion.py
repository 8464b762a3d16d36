"""The model of fashion_mlp in float64, and images for it."""

from __future__ import annotations

import gzip
import json
import pathlib
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

# What an encrypted logit may differ by. The model's slots go through two linear transforms and a
# square at scale 2^42: deploy/demo finds differences below 1e-4 over all 10,000 test images; ten
# times that is still far below what changes an answer, and far above what a wrong image, row or key
# would leave.
TOLERANCE = 1e-3


class Fashion:
    def __init__(self, weights: pathlib.Path) -> None:
        content = weights.read_bytes()
        header_bytes = int.from_bytes(content[:8], "little")
        header: dict[str, Any] = json.loads(content[8 : 8 + header_bytes])
        tensors: dict[str, Array] = {}
        for name, tensor in header.items():
            begin, end = (8 + header_bytes + offset for offset in tensor["data_offsets"])
            numbers = np.frombuffer(content[begin:end], dtype="<f4")
            tensors[name] = numbers.reshape(tensor["shape"]).astype(np.float64)
        self.w1, self.b1 = tensors["w1"], tensors["b1"]
        self.w2, self.b2 = tensors["w2"], tensors["b2"]

    def images(self, count: int) -> Array:
        """The first test images, pixels in [0, 1]."""
        path = "/usr/share/datasets/fashion-mnist/t10k-images-idx3-ubyte.gz"
        with gzip.open(path) as file:
            pixels = np.frombuffer(file.read(16 + 784 * count)[16:], dtype=np.uint8)
        return pixels.reshape(count, 784) / 255.0

    def logits(self, images: Array) -> Array:
        hidden = images @ self.w1.T + self.b1
        logits: Array = hidden**2 @ self.w2.T + self.b2
        return logits
