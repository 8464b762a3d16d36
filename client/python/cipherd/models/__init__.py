"""From a scikit-learn or ONNX model to a program that computes on encrypted data.

    from cipherd.models import from_sklearn

    imported = from_sklearn(pipeline, samples=X_train)          # a fitted estimator
    planned = imported.plan(max_error=1e-3)                     # chooses everything that CKKS
    needs, and measures planned.write("programs/my_model")                          # cipherd
    --programs programs labels = imported.postprocess(planned.evaluate(X_test))     # encrypted, in
    this process: a first look

What is supported, and how to get from there to a daemon, is in the package's README.
"""

from cipherd.models.activations import Activation
from cipherd.models.imported import Agreement, ImportedModel, UnsupportedModelError
from cipherd.models.model import Edge, Model
from cipherd.models.onnx import from_onnx
from cipherd.models.planned import OutputErrors, PlannedProgram
from cipherd.models.polynomial import Polynomial, fit
from cipherd.models.sklearn import from_sklearn

__all__ = [
    "Activation",
    "Agreement",
    "Edge",
    "ImportedModel",
    "Model",
    "OutputErrors",
    "PlannedProgram",
    "Polynomial",
    "UnsupportedModelError",
    "fit",
    "from_onnx",
    "from_sklearn",
]
