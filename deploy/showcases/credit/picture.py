"""The picture of the showcase."""

import pathlib

import matplotlib
import numpy as np
import numpy.typing as npt
from sklearn.metrics import roc_curve

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402

_GOOD, _BAD = "#3b78b0", "#d1603d"


def draw(
    path: pathlib.Path,
    is_bad: npt.NDArray[np.int64],
    plain: npt.NDArray[np.float64],
    encrypted: npt.NDArray[np.float64],
    held_out: npt.NDArray[np.int64],
    threshold: float,
) -> None:
    """ROC curves of the held-out applicants, the scores of all, and how far decrypted ones are from plain."""
    figure, (curves, scores, errors) = pyplot.subplots(1, 3, figsize=(13, 4), layout="constrained")

    for name, values, style in (
        ("plain", plain, {"color": "#bbbbbb", "linewidth": 5}),
        ("decrypted", encrypted, {"color": "black", "linewidth": 1}),
    ):
        false_rate, true_rate, _ = roc_curve(is_bad[held_out], values[held_out])
        curves.plot(false_rate, true_rate, label=name, **style)
    curves.plot([0, 1], [0, 1], color="#dddddd", linestyle=":")
    curves.set(title="ROC, held-out applicants", xlabel="false positive rate", ylabel="true positive rate")
    curves.legend(loc="lower right", frameon=False)

    bins = np.linspace(encrypted.min(), encrypted.max(), 41)
    scores.hist(encrypted[is_bad == 0], bins, color=_GOOD, alpha=0.7, label="repaid")
    scores.hist(encrypted[is_bad == 1], bins, color=_BAD, alpha=0.7, label="bad risk")
    scores.axvline(threshold, color="black", linestyle="--", linewidth=1)
    scores.set(title="Decrypted scores, all applicants", xlabel="log-odds of a bad risk", ylabel="applicants")
    scores.legend(frameon=False)

    errors.hist((encrypted - plain) * 1e6, 41, color="#777777")
    errors.set(title="Decrypted less plain", xlabel="millionths of a log-odd", ylabel="applicants")
    for axes in (curves, scores, errors):
        axes.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
