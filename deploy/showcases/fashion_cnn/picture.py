"""The picture of the showcase."""

import pathlib

import matplotlib
import numpy as np
import numpy.typing as npt

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402

_CLASSES = ("T-shirt", "trousers", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "boot")
_SHOWN_COUNT = 12


def draw(
    path: pathlib.Path,
    images: npt.NDArray[np.float64],
    labels: npt.NDArray[np.uint8],
    logits: npt.NDArray[np.float64],
) -> None:
    """The confusion matrix of decrypted predictions, and the first images that were classified wrongly."""
    predictions = logits.argmax(axis=1)
    counts = np.zeros((10, 10), dtype=np.int64)
    np.add.at(counts, (labels, predictions), 1)

    figure = pyplot.figure(figsize=(13, 5), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(5, 8))
    matrix = left.subplots()
    matrix.imshow(np.sqrt(counts), cmap="Blues")
    for truth, prediction in np.argwhere(counts > 0):
        count = counts[truth, prediction]
        color = "white" if count > counts.max() / 3 else "black"
        matrix.text(prediction, truth, count, ha="center", va="center", color=color, fontsize=8)
    matrix.set_xticks(range(10), _CLASSES, rotation=60, ha="right", fontsize=8)
    matrix.set_yticks(range(10), _CLASSES, fontsize=8)
    matrix.set(xlabel="decrypted prediction", ylabel="what it is")
    matrix.set_title(f"{len(labels)} encrypted images", fontsize=10)

    wrong = np.flatnonzero(predictions != labels)
    right.suptitle(f"the first of {len(wrong)} that the network takes for something else", fontsize=10)
    for axes, k in zip(right.subplots(2, _SHOWN_COUNT // 2).flat, wrong):
        axes.imshow(images[k].reshape(28, 28), cmap="gray_r")
        axes.set_title(f"{_CLASSES[labels[k]]}\n→ {_CLASSES[predictions[k]]}", fontsize=8)
    for axes in right.axes:
        axes.axis("off")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
