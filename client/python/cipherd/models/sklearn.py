"""scikit-learn estimators to models. scikit-learn is not imported: the estimator brings it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from cipherd.errors import invalid_input
from cipherd.models.activations import (
    FUNCTIONS,
    Activation,
    ActivationRange,
    add_activation,
    sigmoid,
)
from cipherd.models.evaluation import Evaluation
from cipherd.models.imported import ImportedModel, UnsupportedModelError
from cipherd.models.model import Edge, Model
from cipherd.models.polynomial import Array, Polynomial

__all__ = ["from_sklearn"]

_MADE_SAMPLES = 256
_LINEAR_MODELS = (
    "LogisticRegression, LinearSVC, RidgeClassifier, LinearRegression, Ridge, Lasso, ElasticNet"
)
_SUPPORTED = (
    f"linear models ({_LINEAR_MODELS} and others with coef_ and intercept_), MLPClassifier,"
    " MLPRegressor, PCA, and pipelines of them with StandardScaler, MinMaxScaler, MaxAbsScaler,"
    " RobustScaler, PCA or a feature selection before"
)
_INSTEAD = {
    "tree": (
        "trees compare, which encrypted numbers cannot; a LogisticRegression or an MLPClassifier"
        " can take its place"
    ),
    "kernel": (
        "a kernel is computed with every support vector; LinearSVC (for a linear kernel the same"
        " model) or MLPClassifier can take its place"
    ),
    "neighbours": (
        "comparing distances is not possible on encrypted numbers; LogisticRegression or LinearSVC"
        " can take its place"
    ),
}
_BY_CLASS = {
    **dict.fromkeys(
        ["BaseDecisionTree", "BaseForest", "BaseGradientBoosting", "BaseHistGradientBoosting"],
        "tree",
    ),
    **dict.fromkeys(
        ["BaseLibSVM", "BaseGaussianProcess", "GaussianProcessClassifier", "KernelRidge"], "kernel"
    ),
    **dict.fromkeys(["NeighborsBase"], "neighbours"),
}


def from_sklearn(
    estimator: Any,
    samples: npt.ArrayLike | None = None,
    *,
    bounds: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    output: Literal["scores", "probabilities"] = "scores",
    activation: Literal["square"] | Polynomial | None = None,
    activation_range: ActivationRange | Sequence[ActivationRange] | None = None,
    degree: int = 7,
    range_margin: float = 1.25,
    name: str | None = None,
) -> ImportedModel:
    """A fitted scikit-learn estimator, or a pipeline of some, as a model.

        pipeline = make_pipeline(StandardScaler(), LogisticRegression()).fit(X_train, y_train)
        imported = from_sklearn(pipeline, samples=X_train)

    Linear estimators are imported exactly; scalers and PCA before them are folded into them.
    Classifiers return their scores (``decision_function``); ``imported.postprocess`` makes labels
    of decrypted ones. An MLP's activation becomes a polynomial; ``imported.activations`` says over
    which range and how well.

    Args:
        estimator: A fitted estimator.
        samples: Typical rows, as the training data: for the ranges of features and of activations,
            and to check that the model is what the estimator computes.
        bounds: In place of samples: the least and the largest value of each feature (or of all).
        output: ``"probabilities"`` adds the sigmoid of a binary LogisticRegression or
            MLPClassifier, as a polynomial over the range of its scores. Unless one needs them
            encrypted, apply the exact function to decrypted scores.
        activation: Of hidden layers, in place of what the estimator says: ``"square"`` or a
            polynomial, for weights that were trained with it.
        activation_range: The range of each hidden layer's activation, or of all; measured over the
            samples unless given.
        degree: Of polynomials that stand for functions. 3, 7, 15 use a depth best.
        range_margin: A measured range is taken so many times as wide.
        name: The program's name; the class of the estimator unless given.

    Raises:
        UnsupportedModelError: The estimator has a part that cannot be evaluated encrypted; the
            message says what can.
        InvalidInputError: An argument does not fit.
    """
    return _Importer(
        estimator, samples, bounds, output, activation, activation_range, degree, range_margin, name
    ).run()


class _Importer:
    def __init__(
        self,
        estimator: Any,
        samples: npt.ArrayLike | None,
        bounds: tuple[npt.ArrayLike, npt.ArrayLike] | None,
        output: str,
        activation: Literal["square"] | Polynomial | None,
        activation_range: ActivationRange | Sequence[ActivationRange] | None,
        degree: int,
        range_margin: float,
        name: str | None,
    ) -> None:
        if output not in ("scores", "probabilities"):
            raise invalid_input("output", f"expected 'scores' or 'probabilities', got {output!r}")
        self._transformers, self._last = _split_pipeline(estimator)
        self._estimator = estimator
        first = (*self._transformers, self._last)[0]
        count = getattr(first, "n_features_in_", None)
        if count is None:
            raise invalid_input(
                "estimator",
                f"this {type(first).__name__} is not fitted: call its fit() with training data"
                " first",
            )
        self._samples = _rows(samples, bounds, int(count))
        self._output = output
        self._activation = activation
        self._activation_range = activation_range
        self._degree = degree
        self._margin = range_margin
        self._activations: list[Activation] = []
        self._model = Model(name or _program_name(self._last))
        lower, upper = (
            (-1.0, 1.0) if self._samples is None else (self._samples.min(), self._samples.max())
        )
        self._x = self._model.input("x", [int(count)], lower=lower, upper=upper)
        self._evaluation = None if self._samples is None else Evaluation(self._model, self._samples)

    def run(self) -> ImportedModel:
        edge = self._x
        for transformer in self._transformers:
            edge = self._transform(edge, transformer)
        if hasattr(self._last, "coefs_") and hasattr(self._last, "out_activation_"):
            scores, reference = self._perceptron(edge)
        elif hasattr(self._last, "coef_") and hasattr(self._last, "intercept_"):
            scores, reference = self._linear(edge)
        elif hasattr(self._last, "transform"):
            scores, reference = self._transform(edge, self._last), self._estimator.transform
            if scores == self._x:
                scores = self._model.multiply_constant(scores, 1.0, name="scores")
        else:
            raise _unsupported(self._last)
        self._check(scores, reference)
        if self._output == "probabilities":
            scores, reference = self._probabilities(scores, reference)
        output = "probabilities" if self._output == "probabilities" else "scores"
        if hasattr(self._last, "transform") and not hasattr(self._last, "predict"):
            output = "components"
        elif not hasattr(self._last, "classes_"):
            output = "predictions"
        self._model.output(output, scores)
        return self._imported(scores, reference)

    def _transform(self, a: Edge, transformer: Any) -> Edge:
        add = _TRANSFORMERS.get(_known_class(transformer, _TRANSFORMERS))
        if add is None and hasattr(transformer, "get_support"):
            add = _select
        if add is None:
            raise _unsupported(transformer)
        return add(self._model, a, transformer)

    def _linear(self, a: Edge) -> tuple[Edge, Callable[[Any], Any]]:
        last = self._last
        if _known_class(last, _BY_CLASS):
            raise _unsupported(last)
        weight = np.atleast_2d(np.asarray(last.coef_, dtype=np.float64))
        if weight.shape[1] != a.element_count:
            raise _unsupported(last)
        bias = np.broadcast_to(np.asarray(last.intercept_, dtype=np.float64), weight.shape[:1])
        scores = self._model.linear(a, weight, bias, name="scores")
        is_classifier = hasattr(last, "classes_")
        return (
            scores,
            self._estimator.decision_function if is_classifier else self._estimator.predict,
        )

    def _perceptron(self, a: Edge) -> tuple[Edge, Callable[[Any], Any]]:
        last = self._last
        function = {"logistic": "sigmoid"}.get(last.activation, last.activation)
        hidden_count = len(last.coefs_) - 1
        for k, (weight, bias) in enumerate(zip(last.coefs_, last.intercepts_)):
            is_hidden = k < hidden_count
            a = self._model.linear(
                a, weight.T, bias, name=f"layer{k + 1}" if is_hidden else "scores"
            )
            if is_hidden:
                a = self._activate(a, function, k)
        exact = self._exact_activation(function)

        def reference(rows: Any) -> Array:
            values = np.asarray(rows, dtype=np.float64)
            for transformer in self._transformers:
                values = transformer.transform(values)
            for k, (weight, bias) in enumerate(zip(last.coefs_, last.intercepts_)):
                values = values @ weight + bias
                if k < hidden_count:
                    values = exact(values)
            return np.asarray(values)

        return a, reference

    def _exact_activation(self, function: str) -> Callable[[Array], Array]:
        if self._activation == "square":
            return np.square
        if self._activation is not None:
            return self._activation
        return FUNCTIONS.get(function, lambda x: x)

    def _activate(self, a: Edge, function: str, layer: int) -> Edge:
        name = f"activation{layer + 1}"
        if self._activation == "square":
            return self._model.square(a, name=name)
        if isinstance(self._activation, Polynomial):
            return self._model.polynomial(a, self._activation, name=name)
        if self._activation is not None:
            raise invalid_input(
                "activation", f"expected 'square' or a Polynomial, got {self._activation!r}"
            )
        if function == "identity":
            return a
        edge, activation = add_activation(
            self._model, a, function, FUNCTIONS[function],
            name=name,
            degree=self._degree,
            stated=_range_of_layer(self._activation_range, layer),
            values=None if self._evaluation is None else self._evaluation.values(a),
            margin=self._margin,
        )  # fmt: skip
        self._activations.append(activation)
        return edge

    def _probabilities(
        self, scores: Edge, reference: Callable[[Any], Any]
    ) -> tuple[Edge, Callable[[Any], Any]]:
        if not hasattr(self._last, "predict_proba"):
            raise UnsupportedModelError(
                f"output='probabilities': {type(self._last).__name__} has none; take"
                " output='scores'"
            )
        if scores.element_count != 1:
            raise UnsupportedModelError(
                f"output='probabilities': with {scores.element_count} classes they come of softmax,"
                " which is no polynomial of single numbers; take output='scores' and apply softmax"
                " to the decrypted scores (imported.postprocess gives the labels: softmax does not"
                " change which score is the largest)"
            )
        edge, activation = add_activation(
            self._model, scores, "sigmoid", sigmoid,
            name="probabilities",
            degree=self._degree,
            stated=None,
            values=None if self._evaluation is None else self._evaluation.values(scores),
            margin=self._margin,
        )  # fmt: skip
        self._activations.append(activation)
        return edge, lambda rows: sigmoid(np.asarray(reference(rows), dtype=np.float64))

    def _check(self, scores: Edge, reference: Callable[[Any], Any]) -> None:
        """That coef_ and intercept_ mean what they mean elsewhere: there are estimators that do
        more to them.
        """
        if self._activations:
            return
        rows = self._samples
        if rows is None:
            rows = np.random.default_rng(1).normal(size=(_MADE_SAMPLES, self._x.element_count))
        made = Evaluation(self._model, rows).values(scores)
        expected = np.asarray(reference(rows), dtype=np.float64)
        scale = max(1.0, float(np.abs(expected).max()))
        if made.size != expected.size or not np.allclose(
            made.ravel(), expected.ravel(), rtol=1e-6, atol=1e-6 * scale
        ):
            raise UnsupportedModelError(
                f"{type(self._last).__name__}: its predictions are not coef_ times the features"
                " plus intercept_, so it does more to them than this importer knows. Supported are"
                f" {_SUPPORTED}"
            )

    def _imported(self, scores: Edge, reference: Callable[[Any], Any]) -> ImportedModel:
        postprocess, decides, threshold = _decision(self._last, self._output, scores.element_count)

        def outputs(rows: npt.ArrayLike) -> Array:
            made = np.asarray(reference(np.asarray(rows, dtype=np.float64)), dtype=np.float64)
            return made.reshape(len(made), -1)

        error = 0.0
        if self._evaluation is not None and self._samples is not None:
            made = self._evaluation.values(scores)
            error = float(np.abs(made - outputs(self._samples)).max())
        return ImportedModel(
            model=self._model,
            activations=tuple(self._activations),
            approximation_error=error,
            postprocess=postprocess,
            reference=outputs,
            decides=decides,
            threshold=threshold,
            samples=self._samples,
        )


def _decision(
    last: Any, output: str, count: int
) -> tuple[Callable[[npt.ArrayLike], npt.NDArray[Any]], str, float]:
    """From decrypted outputs to predictions; how they are decided, and where."""
    if not hasattr(last, "classes_"):
        has_one_target = np.ndim(last.coef_) == 1 if hasattr(last, "coef_") else count == 1
        is_flat = hasattr(last, "predict") and has_one_target
        return (
            lambda outputs: (
                _two_axes(outputs, count)[:, 0] if is_flat else _two_axes(outputs, count)
            ),
            "value",
            0.0,
        )
    classes = np.asarray(last.classes_)
    threshold = 0.5 if output == "probabilities" else 0.0
    if count > 1 and getattr(last, "out_activation_", "") == "logistic":  # several labels an item
        return lambda outputs: (_two_axes(outputs, count) > 0).astype(int), "sign", 0.0
    if count == 1:
        return (
            lambda outputs: classes[(_two_axes(outputs, 1)[:, 0] > threshold).astype(int)],
            "sign",
            threshold,
        )
    return lambda outputs: classes[_two_axes(outputs, count).argmax(axis=1)], "largest", 0.0


def _two_axes(outputs: npt.ArrayLike, count: int) -> Array:
    return np.asarray(outputs, dtype=np.float64).reshape(-1, count)


def _split_pipeline(estimator: Any) -> tuple[list[Any], Any]:
    """The transformers before, and what is at the end."""
    if not hasattr(estimator, "steps"):
        return [], estimator
    parts: list[Any] = []
    for _, step in estimator.steps:
        if step is None or step == "passthrough":
            continue
        before, last = _split_pipeline(step)
        parts += [*before, last]
    if not parts:
        raise invalid_input("estimator", "expected an estimator, got an empty pipeline")
    return parts[:-1], parts[-1]


def _rows(
    samples: npt.ArrayLike | None, bounds: tuple[npt.ArrayLike, npt.ArrayLike] | None, count: int
) -> Array | None:
    """The samples, or some that are made within the bounds."""
    if samples is not None:
        rows = np.ascontiguousarray(samples, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != count or len(rows) == 0:
            raise invalid_input("samples", f"expected shape [n, {count}], got {list(rows.shape)}")
        if not np.isfinite(rows).all():
            raise invalid_input(
                "samples", "expected finite numbers; fill in missing ones before they are encrypted"
            )
        return rows
    if bounds is None:
        return None
    lower, upper = (np.broadcast_to(np.asarray(one, dtype=np.float64), (count,)) for one in bounds)
    if not (np.isfinite(lower).all() and np.isfinite(upper).all() and (lower <= upper).all()):
        raise invalid_input("bounds", "expected the least and the largest value of each feature")
    made = np.random.default_rng(1).uniform(lower, upper, (_MADE_SAMPLES, count))
    return np.concatenate([lower[None], upper[None], made])


def _range_of_layer(
    stated: ActivationRange | Sequence[ActivationRange] | None, layer: int
) -> ActivationRange | None:
    if stated is None:
        return None
    ranges = np.asarray(stated, dtype=np.float64)
    if ranges.shape == (2,):
        return float(ranges[0]), float(ranges[1])
    if ranges.ndim != 2 or ranges.shape[1] != 2 or layer >= len(ranges):
        raise invalid_input(
            "activation_range",
            f"expected (lower, upper), or one for each hidden layer, got {stated!r}",
        )
    return float(ranges[layer, 0]), float(ranges[layer, 1])


def _program_name(estimator: Any) -> str:
    """StandardScaler: standard_scaler."""
    words = re.sub(
        r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", type(estimator).__name__
    )
    return re.sub(r"[^a-z0-9_-]", "_", words.lower())[:64]


def _known_class(estimator: Any, table: dict[str, Any]) -> str:
    """The nearest class of an estimator that a table has, by its name; empty for none."""
    names = (one.__name__ for one in type(estimator).__mro__)
    return next((name for name in names if name in table), "")


def _unsupported(estimator: Any) -> UnsupportedModelError:
    kind = type(estimator).__name__
    known = _known_class(estimator, _BY_CLASS)
    if known:
        return UnsupportedModelError(
            f"{kind} cannot be evaluated encrypted: {_INSTEAD[_BY_CLASS[known]]}"
        )
    if hasattr(estimator, "transform") and not hasattr(estimator, "predict"):
        return UnsupportedModelError(
            f"{kind} is not supported as a step: apply it before encryption (import the steps"
            " behind it as a pipeline of their own, and transform features first). Supported are"
            f" {_SUPPORTED}"
        )
    return UnsupportedModelError(f"{kind} is not supported. Supported are {_SUPPORTED}")


def _affine(
    model: Model, a: Edge, offset: npt.ArrayLike | None, factor: npt.ArrayLike | None
) -> Edge:
    """(a + offset) * factor; the lowering folds it into the layer behind it."""
    if offset is not None:
        a = model.add_constant(a, offset)
    return a if factor is None else model.multiply_constant(a, factor)


def _standard_scaler(model: Model, a: Edge, scaler: Any) -> Edge:
    return _affine(
        model, a,
        -scaler.mean_ if scaler.with_mean else None,
        1 / scaler.scale_ if scaler.with_std else None,
    )  # fmt: skip


def _min_max_scaler(model: Model, a: Edge, scaler: Any) -> Edge:
    if scaler.clip:
        raise UnsupportedModelError(
            "MinMaxScaler(clip=True) compares, which encrypted numbers cannot: clip features before"
            " encryption, and set clip=False"
        )
    return model.add_constant(model.multiply_constant(a, scaler.scale_), scaler.min_)


def _max_abs_scaler(model: Model, a: Edge, scaler: Any) -> Edge:
    if getattr(scaler, "clip", False):
        raise UnsupportedModelError(
            "MaxAbsScaler(clip=True) compares, which encrypted numbers cannot: clip features before"
            " encryption, and set clip=False"
        )
    return _affine(model, a, None, 1 / scaler.scale_)


def _robust_scaler(model: Model, a: Edge, scaler: Any) -> Edge:
    return _affine(
        model, a,
        -scaler.center_ if scaler.with_centering else None,
        1 / scaler.scale_ if scaler.with_scaling else None,
    )  # fmt: skip


def _pca(model: Model, a: Edge, pca: Any) -> Edge:
    weight = np.asarray(pca.components_, dtype=np.float64)
    if pca.whiten:
        deviation = np.sqrt(pca.explained_variance_)
        weight = weight / np.maximum(deviation, np.finfo(np.float64).eps)[:, None]
    return model.linear(a, weight, -weight @ pca.mean_)


def _truncated_svd(model: Model, a: Edge, svd: Any) -> Edge:
    return model.linear(a, svd.components_)


def _select(model: Model, a: Edge, selector: Any) -> Edge:
    return model.select(a, selector.get_support(indices=True))


_TRANSFORMERS: dict[str, Callable[[Model, Edge, Any], Edge]] = {
    "StandardScaler": _standard_scaler,
    "MinMaxScaler": _min_max_scaler,
    "MaxAbsScaler": _max_abs_scaler,
    "RobustScaler": _robust_scaler,
    "PCA": _pca,
    "TruncatedSVD": _truncated_svd,
}
