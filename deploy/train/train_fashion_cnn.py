#!/usr/bin/env python3
"""Trains a small convolutional network on Fashion-MNIST, for the showcase fashion_cnn.

    deploy/showcases/prepare           # or any Python whose NumPy has a quick BLAS
    build/release/python-environment/bin/python deploy/train/train_fashion_cnn.py

The network, of pixels x in [0, 1]:

    Conv 5 x 5, stride 2, 1 -> 4 channels    [4, 12, 12]
    square
    Gemm 576 -> 64
    square
    Gemm 64 -> 10                            logits

Writes weights.safetensors: conv.weight [4, 1, 5, 5], conv.bias, hidden.weight [64, 576],
hidden.bias, logits.weight [10, 64], logits.bias, in float32. Half of the images are mirrored while
it trains. Equal arguments give equal bytes on one machine.
"""

import argparse
import pathlib

import numpy as np

import adamw
import fashion_mnist
import safetensors_file

SIDE = 28
CHANNEL_COUNT = 4
KERNEL = 5
STRIDE = 2
CONV_SIDE = (SIDE - KERNEL) // STRIDE + 1
HIDDEN_COUNT = 64
NAMES = (
    "conv.weight",
    "conv.bias",
    "hidden.weight",
    "hidden.bias",
    "logits.weight",
    "logits.bias",
)


def patches(x):
    """What the convolution reads, [25, n * 144], of pixels [n, 784]."""
    images = x.reshape(-1, SIDE, SIDE)
    reach = STRIDE * (CONV_SIDE - 1) + 1
    rows = [
        images[:, down : down + reach : STRIDE, right : right + reach : STRIDE]
        for down in range(KERNEL)
        for right in range(KERNEL)
    ]
    return np.stack(rows).reshape(KERNEL**2, -1)


def forward(parameters, windows):
    """Returns the sums before each square, and the logits, of `patches`."""
    conv_weight, conv_bias, hidden_weight, hidden_bias, logit_weight, logit_bias = parameters
    conv = conv_weight.reshape(CHANNEL_COUNT, -1) @ windows + conv_bias[:, None]
    conv = conv.reshape(CHANNEL_COUNT, -1, CONV_SIDE**2).transpose(1, 0, 2)
    conv = conv.reshape(len(conv), -1)
    hidden = conv * conv @ hidden_weight.T + hidden_bias
    return conv, hidden, hidden * hidden @ logit_weight.T + logit_bias


def logits(parameters, x):
    """The logits [n, 10] of pixels [n, 784], in the precision of the parameters."""
    chunks = [forward(parameters, patches(x[k : k + 1000]))[2] for k in range(0, len(x), 1000)]
    return np.concatenate(chunks)


def gradients(parameters, x, labels, smoothing):
    """Gradients of the mean cross-entropy with targets smoothed by `smoothing`."""
    windows = patches(x)
    conv, hidden, scores = forward(parameters, windows)
    logit_gradient = adamw.smoothed_loss_gradient(scores, labels, smoothing)
    hidden_gradient = (logit_gradient @ parameters[4]) * 2 * hidden
    conv_gradient = (hidden_gradient @ parameters[2]) * 2 * conv
    conv_gradient = conv_gradient.reshape(len(x), CHANNEL_COUNT, -1)
    by_channel = conv_gradient.transpose(1, 0, 2).reshape(CHANNEL_COUNT, -1)
    return (
        (by_channel @ windows.T).reshape(parameters[0].shape),
        by_channel.sum(axis=1),
        hidden_gradient.T @ (conv * conv),
        hidden_gradient.sum(axis=0),
        logit_gradient.T @ (hidden * hidden),
        logit_gradient.sum(axis=0),
    )


def mirrored(x, random):
    """Half of the images, chosen at random, mirrored left to right."""
    images = x.reshape(-1, SIDE, SIDE).copy()
    chosen = random.random(len(images)) < 0.5
    images[chosen] = images[chosen, :, ::-1]
    return images.reshape(len(x), -1)


def train(x, labels, options):
    """Smoothed labels keep the logits small."""
    random = np.random.default_rng(options.seed)
    conv_count = CHANNEL_COUNT * CONV_SIDE**2
    shapes = [
        (CHANNEL_COUNT, 1, KERNEL, KERNEL),
        (CHANNEL_COUNT,),
        (HIDDEN_COUNT, conv_count),
        (HIDDEN_COUNT,),
        (10, HIDDEN_COUNT),
        (10,),
    ]
    deviations = [0.3, 0.0, 0.08, 0.0, 0.1, 0.0]
    decays = [options.weight_decay if len(shape) > 1 else 0.0 for shape in shapes]
    parameters = [
        (deviation * random.standard_normal(shape)).astype(np.float32)
        for shape, deviation in zip(shapes, deviations)
    ]

    def batch_gradients(parameters, rows):
        return gradients(parameters, mirrored(x[rows], random), labels[rows], options.smoothing)

    adamw.minimize(parameters, decays, len(x), batch_gradients, options, random)
    return parameters


def fold_mean(parameters, mean):
    """The same function of x instead of x - mean, a number, rounded to float32 once."""
    parameters = [p.astype(np.float64) for p in parameters]
    parameters[1] = parameters[1] - mean * parameters[0].sum(axis=(1, 2, 3))
    return [p.astype(np.float32) for p in parameters]


def main():
    here = pathlib.Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=pathlib.Path, default=fashion_mnist.DEFAULT_DIRECTORY)
    parser.add_argument(
        "--out", type=pathlib.Path, default=here.parent / "showcases" / "fashion_cnn"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--learning-rate", type=float, default=3e-3)
    parser.add_argument("--weight-decay", type=float, default=0.1)
    parser.add_argument("--smoothing", type=float, default=0.1, help="of labels")
    options = parser.parse_args()

    x, labels = fashion_mnist.load(options.data, "train")
    test_x, test_labels = fashion_mnist.load(options.data, "t10k")
    mean = x.mean()
    parameters = train((x - mean).astype(np.float32), labels, options)
    parameters = fold_mean(parameters, mean)

    exact = [p.astype(np.float64) for p in parameters]
    for name, images, truth in (("train", x, labels), ("test", test_x, test_labels)):
        scores = logits(exact, images)
        print(
            f"{name}: {len(images)} images, float64 accuracy "
            f"{100 * (scores.argmax(axis=1) == truth).mean():.2f} %, "
            f"max |logit| {np.abs(scores).max():.3f}"
        )
    options.out.mkdir(parents=True, exist_ok=True)
    safetensors_file.write(options.out / "weights.safetensors", dict(zip(NAMES, parameters)))
    print(f"wrote {options.out / 'weights.safetensors'}")


if __name__ == "__main__":
    main()
