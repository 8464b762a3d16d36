"""Images of Fashion-MNIST as vectors of unit length, so that a product of two is a cosine."""

from dataclasses import dataclass

import fashion_mnist
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

DIMENSION_COUNT = 128
TRAINING_COUNT = 60_000
MIRRORED_COUNT = 40_000
MOST_VECTORS = TRAINING_COUNT + MIRRORED_COUNT
MOST_QUERIES = 10_000


@dataclass(frozen=True)
class Vectors:
    """Images, one a row."""

    rows: Array
    """[n, 128], of unit length."""
    labels: npt.NDArray[np.uint8]


def load() -> tuple[Vectors, Vectors]:
    """The gallery, which is the training images and the first 40,000 of them mirrored; and the test images.

    Vectors are the first 128 principal components of the training images, scaled to unit variance (whitened).
    """
    images, labels = fashion_mnist.load(fashion_mnist.DEFAULT_DIRECTORY, "train")
    tests, test_labels = fashion_mnist.load(fashion_mnist.DEFAULT_DIRECTORY, "t10k")
    mean = images.mean(axis=0)
    variances, components = np.linalg.eigh(images.T @ images / len(images) - np.outer(mean, mean))
    largest = slice(None, -DIMENSION_COUNT - 1, -1)  # ascending is what eigh returns
    basis = components[:, largest] / np.sqrt(variances[largest])
    # An image mirrored by the basis is the image by the basis mirrored.
    mirrored = basis.reshape(28, 28, -1)[:, ::-1].reshape(basis.shape)
    rows = np.concatenate([images @ basis, images[:MIRRORED_COUNT] @ mirrored]) - [mean @ basis]
    gallery = Vectors(_to_unit_length(rows), np.concatenate([labels, labels[:MIRRORED_COUNT]]))
    return gallery, Vectors(_to_unit_length((tests - mean) @ basis), test_labels)


def images_of(gallery_rows: npt.NDArray[np.int64], queries: npt.NDArray[np.int64]) -> tuple[Array, Array]:
    """What rows of the gallery and queries were made of, [n, 28, 28] each."""
    images, _ = fashion_mnist.load(fashion_mnist.DEFAULT_DIRECTORY, "train")
    tests, _ = fashion_mnist.load(fashion_mnist.DEFAULT_DIRECTORY, "t10k")
    is_mirrored = gallery_rows >= TRAINING_COUNT
    found = images[gallery_rows - TRAINING_COUNT * is_mirrored].reshape(-1, 28, 28)
    return np.where(is_mirrored[:, None, None], found[:, :, ::-1], found), tests[queries].reshape(-1, 28, 28)


def _to_unit_length(rows: Array) -> Array:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)
