"""Classifies encrypted images of Fashion-MNIST: a multilayer perceptron, and a small convolutional network."""

import pathlib
import sys
import tempfile

import fashion_mnist
import networks
import numpy as np
from showcase import arguments, programs, report
from showcase.daemon import Daemon
from showcase.measurement import Measurement, measure

# What logits are to keep; they are up to about 15.
MAX_ERROR = 1e-3
# Training images that magnitudes are taken from.
SAMPLE_COUNT = 2000


def bars_of(name: str, truth: np.ndarray, plain: np.ndarray, measured: Measurement) -> list[report.Bar]:
    encrypted = measured.outputs
    error = np.abs(encrypted - plain).max()
    ordered = np.sort(plain, axis=1)
    margin = (ordered[:, -1] - ordered[:, -2]).min()
    different = (encrypted.argmax(axis=1) != plain.argmax(axis=1)).sum()
    accuracies = [float((one.argmax(axis=1) == truth).mean()) for one in (encrypted, plain)]
    return [
        report.Bar(
            f"{name}: every logit of {len(truth)} images agrees with float64 within {MAX_ERROR:.0e}",
            f"errors up to {error:.1e}",
            bool(error <= MAX_ERROR),
        ),
        report.Bar(
            f"{name}: every prediction equal",
            f"{different} differ; the narrowest is decided by {margin:.1e}",
            bool(different == 0),
        ),
        report.Bar(
            f"{name}: accuracy equal to three digits",
            f"{accuracies[0]:.3f}, plain {accuracies[1]:.3f}",
            round(accuracies[0], 3) == round(accuracies[1], 3),
        ),
    ]


def main() -> int:
    parser = arguments.parser(__doc__)
    arguments.add_in_flight(parser)
    parser.add_argument("--images", type=int, default=1000, help="test images, 1 to 10000 (default: 1000)")
    options = parser.parse_args()
    if not 1 <= options.images <= 10000:
        parser.error("--images: expected 1 to 10000")

    training_images, _ = fashion_mnist.load(fashion_mnist.DEFAULT_DIRECTORY, "train")
    samples = training_images[:SAMPLE_COUNT].copy()
    del training_images
    images, labels = fashion_mnist.load(fashion_mnist.DEFAULT_DIRECTORY, "t10k")
    tested, truth = images[: options.images], labels[: options.images]

    chosen = [networks.mlp(), networks.cnn()]
    names = [one.model.name for one in chosen]
    accuracies = [float((one.reference(images).argmax(axis=1) == labels).mean()) for one in chosen]
    plain = [one.reference(tested) for one in chosen]

    with tempfile.TemporaryDirectory(prefix="cipherd-fashion.") as directory:
        served = pathlib.Path(directory) / "programs"
        served.mkdir()
        for one in chosen:
            programs.plan(one.model, samples, served, device=options.device, max_error=MAX_ERROR)
        with Daemon(served, device=options.device) as daemon:
            measured = []
            for name in names:
                print(f"== {name}: classifying {len(tested)} encrypted images", flush=True)
                measured.append(measure(daemon.target, name, tested, in_flight=options.in_flight))

    def row(name: str, *cells: str) -> tuple[str, ...]:
        return (name, *cells)

    def accuracy(logits: np.ndarray) -> str:
        return f"{(logits.argmax(axis=1) == truth).mean():.3f}"

    errors = [one.outputs - expected for one, expected in zip(measured, plain)]
    print()
    report.print_table(
        names,
        [
            row("accuracy of float64, 10000 test images", *(f"{one:.4f}" for one in accuracies)),
            row(f"accuracy of float64, first {len(truth)}", *(accuracy(one) for one in plain)),
            row(f"accuracy encrypted, first {len(truth)}", *(accuracy(one.outputs) for one in measured)),
            row("largest logit", *(f"{np.abs(one).max():.1f}" for one in plain)),
            row("largest error of a logit", *(f"{np.abs(one).max():.1e}" for one in errors)),
            row("root mean square error", *(f"{np.sqrt((one**2).mean()):.1e}" for one in errors)),
            *report.cost_rows("images", measured),
        ],
    )
    print()
    bars = [
        bar for name, expected, one in zip(names, plain, measured) for bar in bars_of(name, truth, expected, one)
    ]
    holds = report.print_bars(bars)
    if options.picture:
        import picture

        picture.draw(options.picture, tested, truth, measured[-1].outputs)
        print(f"wrote {options.picture}")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
