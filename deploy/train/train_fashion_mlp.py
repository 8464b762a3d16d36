#!/usr/bin/env python3
"""Trains 784 -> 64 -> 10 with square activation on Fashion-MNIST and writes the program directory.

    apt-get install python3-numpy dataset-fashion-mnist     # python3-tqdm for a progress bar
    /usr/bin/python3 deploy/train/train_fashion_mlp.py

Writes program.textproto, constants.safetensors (what the program computes with) and
weights.safetensors (w1, b1, w2, b2 for a plain evaluation: logits = w2 (w1 x + b1)^2 + b2 of pixels
x in [0, 1]). Equal arguments give equal bytes on one machine.
"""

import argparse
import pathlib

import numpy as np

import adamw
import fashion_mlp_program
import fashion_mnist
import safetensors_file


def forward(parameters, x):
    """Returns the hidden sums before squaring, and the logits."""
    w1, b1, w2, b2 = parameters
    hidden = x @ w1.T + b1
    return hidden, hidden * hidden @ w2.T + b2


def gradients(parameters, x, labels, smoothing):
    """Gradients of the mean cross-entropy with targets smoothed by `smoothing`."""
    hidden, logits = forward(parameters, x)
    logit_gradient = adamw.smoothed_loss_gradient(logits, labels, smoothing)
    hidden_gradient = (logit_gradient @ parameters[2]) * 2 * hidden
    return (
        hidden_gradient.T @ x,
        hidden_gradient.sum(axis=0),
        logit_gradient.T @ (hidden * hidden),
        logit_gradient.sum(axis=0),
    )


def train(x, labels, options):
    """Smoothed labels keep the logits small."""
    random = np.random.default_rng(options.seed)
    hidden_count = fashion_mlp_program.HIDDEN_COUNT
    shapes = [(hidden_count, x.shape[1]), (hidden_count,), (10, hidden_count), (10,)]
    deviations = [0.03, 0.0, 0.1, 0.0]
    decays = [options.weight_decay, 0.0, options.weight_decay, 0.0]
    parameters = [
        (deviation * random.standard_normal(shape)).astype(np.float32)
        for shape, deviation in zip(shapes, deviations)
    ]

    def batch_gradients(parameters, rows):
        return gradients(parameters, x[rows], labels[rows], options.smoothing)

    adamw.minimize(parameters, decays, len(x), batch_gradients, options, random)
    return parameters


def fold_mean(parameters, mean):
    """The same function of x instead of x - mean, rounded to float32 once."""
    w1, b1, w2, b2 = (p.astype(np.float64) for p in parameters)
    return [p.astype(np.float32) for p in (w1, b1 - w1 @ mean, w2, b2)]


def evaluate(parameters, x, labels):
    """Accuracy, max |hidden| and max |logit| in float64."""
    hidden, logits = forward([p.astype(np.float64) for p in parameters], x)
    return (logits.argmax(axis=1) == labels).mean(), np.abs(hidden).max(), np.abs(logits).max()


def main():
    here = pathlib.Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=pathlib.Path, default=fashion_mnist.DEFAULT_DIRECTORY)
    parser.add_argument(
        "--out", type=pathlib.Path, default=here.parent / "programs" / "fashion_mlp"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--weight-decay", type=float, default=0.02)
    parser.add_argument("--smoothing", type=float, default=0.1, help="of labels")
    options = parser.parse_args()

    x, labels = fashion_mnist.load(options.data, "train")
    test_x, test_labels = fashion_mnist.load(options.data, "t10k")
    mean = x.mean(axis=0)
    parameters = train((x - mean).astype(np.float32), labels, options)
    parameters = fold_mean(parameters, mean)

    largest_logit = 0.0
    for name, images, truth in (("train", x, labels), ("test", test_x, test_labels)):
        accuracy, max_hidden, max_logit = evaluate(parameters, images, truth)
        largest_logit = max(largest_logit, max_logit)
        print(
            f"{name}: {len(images)} images, float64 accuracy {100 * accuracy:.2f} %, "
            f"max |hidden| {max_hidden:.3f}, max |logit| {max_logit:.3f}"
        )

    # The next power of two above twice what was seen.
    magnitude_bound = 2.0 ** np.ceil(np.log2(2 * largest_logit))
    options.out.mkdir(parents=True, exist_ok=True)
    safetensors_file.write(
        options.out / "constants.safetensors", fashion_mlp_program.constants(*parameters)
    )
    safetensors_file.write(
        options.out / "weights.safetensors", dict(zip(("w1", "b1", "w2", "b2"), parameters))
    )
    (options.out / "program.textproto").write_text(fashion_mlp_program.text(magnitude_bound))
    print(f"wrote {options.out}")


if __name__ == "__main__":
    main()
