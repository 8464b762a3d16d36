"""What to do about nodes that have no rule."""

from __future__ import annotations

from collections.abc import Iterable

from cipherd.models.onnx_rules.node import Node

__all__ = ["advice_on"]

_ADVICE = {
    "Softmax": (
        "it divides by a sum of exponentials. Import the edge before it (outputs=['{input}']), and"
        " apply softmax to the decrypted scores, or argmax, which softmax does not change"
    ),
    "ArgMax": (
        "it compares. Import the edge before it (outputs=['{input}']), and apply argmax to the"
        " decrypted scores"
    ),
    "TopK": (
        "it compares. Import the edge before it (outputs=['{input}']), and sort the decrypted"
        " scores"
    ),
    "MaxPool": "it compares. Train with AveragePool in its place, which is linear",
    "GlobalMaxPool": "it compares. Train with GlobalAveragePool in its place, which is linear",
    "Max": "it compares. Relu, as a polynomial over a stated range, may take its place",
    "Clip": (
        "it compares. Clip inputs before encryption; between layers, leave it out or use Relu,"
        " Sigmoid or Tanh, which become polynomials over a range"
    ),
    "LayerNormalization": (
        "it divides by a deviation of encrypted numbers. Train with BatchNormalization in its"
        " place, which is linear once trained"
    ),
    "LSTM": (
        "recurrent layers are too deep. Convolutions over the sequence (Conv, AveragePool) may take"
        " its place"
    ),
    "Concat": (
        "it joins edges, which models do not have. Sum the results of a layer for each of them"
        " instead: W [a; b] = Wa a + Wb b"
    ),
}
_ADVICE["LogSoftmax"] = _ADVICE["Hardmax"] = _ADVICE["Softmax"]
_ADVICE["ArgMin"] = _ADVICE["ArgMax"]
_ADVICE["Min"] = _ADVICE["Max"]
_ADVICE["InstanceNormalization"] = _ADVICE["GroupNormalization"] = _ADVICE["LayerNormalization"]
_ADVICE["GRU"] = _ADVICE["RNN"] = _ADVICE["LSTM"]
_COMPARISONS = {
    "Equal",
    "Greater",
    "GreaterOrEqual",
    "Less",
    "LessOrEqual",
    "Where",
    "Sign",
    "Abs",
    "NonZero",
    "If",
    "Loop",
}


def advice_on(node: Node, known: Iterable[str]) -> str:
    """What takes the node's place; ``known`` are the kinds that have rules."""
    if node.kind in _ADVICE:
        return _ADVICE[node.kind].format(input=node.inputs[0] if node.inputs else "")
    if node.kind in _COMPARISONS:
        return (
            "it depends on comparisons, which encrypted numbers do not have. Leave it out, or do it"
            " on the client"
        )
    kinds = ", ".join(sorted(known))
    if domain := node.kind.rpartition(".")[0]:
        return (
            f"operators of the domain {domain} are not known; convert the model to those of"
            f" ONNX: {kinds}"
        )
    return f"known are {kinds}. Rewrite it with these, or import an edge before it (outputs=[...])"
