"""The two networks: as models to plan, and in float64 by the code that trained them."""

import pathlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import safetensors_file
import train_fashion_cnn
import train_fashion_mlp

from cipherd.models import Model

Array = npt.NDArray[np.float64]

_HERE = pathlib.Path(__file__).resolve().parent
_MLP_WEIGHTS = _HERE.parents[1] / "programs" / "fashion_mlp" / "weights.safetensors"


@dataclass(frozen=True)
class Network:
    """A network, twice."""

    model: Model
    reference: Callable[[Array], Array]
    """Logits [n, 10] of pixels [n, 784] in float64; shares nothing with ``model`` but the weights."""


def mlp() -> Network:
    """That of the demo: 784 -> 64, square, 64 -> 10."""
    weights = _read(_MLP_WEIGHTS)
    model = Model("fashion_mlp_planned", description="Fashion-MNIST, 784 -> 64 -> 10 with square activation")
    images = model.input("images", [784], lower=0, upper=1, description="pixels in [0, 1], row by row")
    hidden = model.square(model.linear(images, weights["w1"], weights["b1"], name="hidden"))
    model.output("logits", model.linear(hidden, weights["w2"], weights["b2"], name="logits"))
    parameters = [weights[name] for name in ("w1", "b1", "w2", "b2")]
    return Network(model, lambda x: train_fashion_mlp.forward(parameters, x)[1])


def cnn() -> Network:
    """Conv 5 x 5 of stride 2 to 4 channels, square, 576 -> 64, square, 64 -> 10."""
    weights = _read(_HERE / "weights.safetensors")
    model = Model("fashion_cnn", description="Fashion-MNIST, a convolution and two layers with square activations")
    images = model.input("images", [1, 28, 28], lower=0, upper=1, description="pixels in [0, 1], row by row")
    stride = (train_fashion_cnn.STRIDE, train_fashion_cnn.STRIDE)
    conv = model.conv2d(images, weights["conv.weight"], weights["conv.bias"], strides=stride, name="conv")
    hidden = model.linear(model.square(conv), weights["hidden.weight"], weights["hidden.bias"], name="hidden")
    logits = model.linear(model.square(hidden), weights["logits.weight"], weights["logits.bias"], name="logits")
    model.output("logits", logits)
    parameters = [weights[name] for name in train_fashion_cnn.NAMES]
    return Network(model, lambda x: train_fashion_cnn.logits(parameters, x))


def _read(path: pathlib.Path) -> dict[str, Array]:
    return {name: array.astype(np.float64) for name, array in safetensors_file.read(path).items()}
