"""The picture of the showcase."""

import pathlib

import embedding
import matplotlib
import numpy as np
import numpy.typing as npt
from search import Findings

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402

_SHOWN_QUERIES = 6
_SHOWN_NEAREST = 5


def draw(path: pathlib.Path, findings: Findings, truth: npt.NDArray[np.uint8], max_error: float) -> None:
    """Queries with what was found, how far scores are off, and by how much the nearest is decided.

    ``truth`` are the queries' labels; shown are the first ones of different labels.
    """
    shown = np.sort(np.unique(truth, return_index=True)[1])[:_SHOWN_QUERIES]
    nearest = findings.best[shown, :_SHOWN_NEAREST]
    found, asked = embedding.images_of(nearest.ravel(), shown)

    figure = pyplot.figure(figsize=(13, 5), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(6, 7))
    left.suptitle("encrypted queries, and the nearest that decrypted scores name", fontsize=10)
    grid = left.subplots(len(shown), 1 + _SHOWN_NEAREST, squeeze=False)
    for axes, image in zip(grid[:, 0], asked):
        axes.imshow(image, cmap="Blues")
    for axes, image in zip(grid[:, 1:].flat, found):
        axes.imshow(image, cmap="gray_r")
    for axes in grid.flat:
        axes.axis("off")

    errors, margins = right.subplots(2, 1)
    edges = np.linspace(-max_error, max_error, len(findings.error_counts) + 1) * 1e6
    errors.stairs(findings.error_counts, edges, fill=True, color="#777777")
    errors.set(title="Decrypted scores less plain", xlabel="millionths", yticks=[], ylabel="scores")
    margin = findings.plain_scores[:, 0] - findings.plain_scores[:, 1]
    decades = np.linspace(-7, 0, 57)
    margins.hist(np.log10(np.maximum(margin, 1e-7)), decades, color="#3b78b0")
    margins.axvline(np.log10(2 * findings.errors.max()), color="#d1603d", linestyle="--", linewidth=1)
    ticks = range(-7, 1)
    margins.set_xticks(ticks, [f"$10^{{{tick}}}$" for tick in ticks])
    margins.set(
        title="The nearest's score less the second's; dashed: twice the largest error",
        xlabel="cosine",
        ylabel="queries",
    )
    for axes in (errors, margins):
        axes.title.set_fontsize(10)
        axes.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
