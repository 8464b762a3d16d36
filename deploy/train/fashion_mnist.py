"""Fashion-MNIST as Debian's package dataset-fashion-mnist installs it: gzipped IDX files."""

import gzip
import pathlib
import struct

import numpy as np

DEFAULT_DIRECTORY = pathlib.Path("/usr/share/datasets/fashion-mnist")
PIXEL_COUNT = 784
CLASS_COUNT = 10

_UNSIGNED_BYTES = 0x08


def read_idx(path):
    """Returns the uint8 array of a gzipped IDX file."""
    with gzip.open(path, "rb") as file:
        content = file.read()
    zero, dtype, rank = struct.unpack_from(">HBB", content)
    if zero != 0 or dtype != _UNSIGNED_BYTES:
        raise ValueError(f"{path}: expected an IDX file of unsigned bytes")
    shape = struct.unpack_from(f">{rank}I", content, 4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * rank).reshape(shape)


def load(directory, split):
    """Returns float64 pixels in [0, 1] [count, 784], and labels [count], of split train or t10k."""
    images = read_idx(directory / f"{split}-images-idx3-ubyte.gz")
    labels = read_idx(directory / f"{split}-labels-idx1-ubyte.gz")
    if len(images) != len(labels) or images[0].size != PIXEL_COUNT:
        raise ValueError(f"{directory}: {images.shape} images do not fit {labels.shape} labels")
    return images.reshape(len(images), PIXEL_COUNT) / 255.0, labels
