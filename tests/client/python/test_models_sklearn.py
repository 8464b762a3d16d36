"""Estimators trained by scikit-learn on its bundled data sets: imported, planned, evaluated encrypted."""

from __future__ import annotations

import pathlib
import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import (
    Lasso,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
)
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, RobustScaler, StandardScaler
from sklearn.svm import SVC, LinearSVC

import cipherd
from cipherd.models import ImportedModel, Polynomial, UnsupportedModelError, from_sklearn
from conftest import ROOT, Daemon

DATA = {
    "cancer": load_breast_cancer,
    "wine": load_wine,
    "digits": load_digits,
    "diabetes": load_diabetes,
}
MAX_ERROR = 1e-3


@dataclass
class Case:
    data: str
    make: Callable[[], Any]
    options: dict[str, Any] = field(default_factory=dict)
    score: float = 0.0
    """Of predictions on the rows that were not trained on, at least: the model is worth something."""


CASES = {
    "logistic_binary": Case("cancer", lambda: make_pipeline(StandardScaler(), LogisticRegression()), score=0.93),
    "logistic_probabilities": Case(
        "cancer", lambda: make_pipeline(StandardScaler(), LogisticRegression(C=0.1)),
        {"output": "probabilities", "degree": 15}, score=0.93,
    ),
    "logistic_multinomial": Case("digits", lambda: make_pipeline(MinMaxScaler(), LogisticRegression()), score=0.93),
    "linear_regression": Case("diabetes", LinearRegression, score=0.3),
    "lasso": Case("diabetes", lambda: make_pipeline(RobustScaler(), Lasso(0.01)), score=0.3),
    "linear_svc": Case("wine", lambda: make_pipeline(StandardScaler(), LinearSVC()), score=0.9),
    "pca": Case("digits", lambda: PCA(16, whiten=True)),
    "pca_svc": Case("digits", lambda: make_pipeline(StandardScaler(), PCA(24), LinearSVC(max_iter=20)), score=0.9),
    "mlp_relu": Case(
        "digits",
        lambda: make_pipeline(MinMaxScaler(), MLPClassifier((24,), alpha=0.1, max_iter=150, random_state=0)), score=0.93,
    ),
    "mlp_tanh": Case(
        "wine",
        lambda: make_pipeline(StandardScaler(), MLPClassifier((8,), activation="tanh", alpha=1, max_iter=300, random_state=0)),
        score=0.9,
    ),
    "mlp_regressor": Case(
        "diabetes",
        lambda: make_pipeline(
            StandardScaler(),
            MLPRegressor(hidden_layer_sizes=(8,), activation="logistic", alpha=0.1, learning_rate_init=0.01, max_iter=100, random_state=0),
        ),
        score=0.3,
    ),
}  # fmt: skip


def fitted(name: str) -> tuple[Any, ImportedModel, Any, Any]:
    """Trained on two of three rows; the others."""
    case = CASES[name]
    x, y = DATA[case.data](return_X_y=True)
    if case.data == "diabetes":
        y = (y - y.mean()) / y.std()
    is_test = np.arange(len(x)) % 3 == 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of convergence
        estimator = case.make().fit(x[~is_test], y[~is_test])
    imported = from_sklearn(estimator, samples=x[~is_test], **case.options)
    return estimator, imported, x[is_test], y[is_test]


def predictions(estimator: Any, rows: Any) -> Any:
    return estimator.predict(rows) if hasattr(estimator, "predict") else estimator.transform(rows)


@pytest.mark.parametrize("name", CASES)
def test_encrypted_predictions_are_those_of_the_estimator(name: str) -> None:
    estimator, imported, rows, truth = fitted(name)
    planned = imported.plan(max_error=MAX_ERROR, encrypted_samples=256)
    assert planned.largest_error <= MAX_ERROR
    scores = planned.evaluate(rows)
    # What was encrypted is the model, whatever its activations became.
    assert np.abs(scores - imported.scores(rows)).max() <= 2 * MAX_ERROR

    agreement = imported.agreement(rows, scores, planned)
    print(f"\n{name}: {agreement}, {planned!r}")
    assert agreement.sample_count == len(rows)
    made, expected = imported.postprocess(scores), predictions(estimator, rows)
    assert made.shape == expected.shape
    assert agreement.holds, agreement
    if hasattr(estimator, "classes_"):
        assert (made != expected).sum() == agreement.different
        assert made.dtype == expected.dtype
    else:
        assert agreement.different == 0
        np.testing.assert_allclose(made, expected, rtol=0, atol=agreement.stated_error)
    if hasattr(estimator, "predict"):
        score = np.mean(made == truth) if hasattr(estimator, "classes_") else _r2(made, truth)
        assert score >= CASES[name].score


def _r2(made: Any, truth: Any) -> float:
    return float(1 - np.square(made - truth).sum() / np.square(truth - truth.mean()).sum())


def refuses_items_unlike_the_samples(session: cipherd.Session, rows: Any) -> None:
    stated = session.program.inputs[0]
    assert stated.lower < rows.min() and rows.max() < stated.upper
    wrong = rows.copy()
    last = len(rows) - 1  # of a later request than the first, where one does not hold them all
    wrong[last, 2] = 1.01 * stated.upper
    with pytest.raises(cipherd.OutOfRangeError, match="planned for") as raised:
        session.evaluate(wrong)
    assert raised.value.path == f"inputs['x'][{last}][2]"
    # Each feature as large as the largest of any: only the result shows it.
    with pytest.raises(cipherd.OutOfRangeError) as raised:
        session.evaluate(np.full_like(rows, stated.upper))
    assert raised.value.path.startswith("outputs['scores'][")


@pytest.mark.parametrize("name", ["logistic_binary", "mlp_tanh"])
def test_a_daemon_serves_what_was_planned(name: str, tmp_path: pathlib.Path) -> None:
    _, imported, rows, _ = fitted(name)
    planned = imported.plan(max_error=MAX_ERROR, encrypted_samples=64)
    planned.write(tmp_path / "programs" / planned.name)
    daemon = Daemon(tmp_path / "daemon", tmp_path / "programs")
    try:
        daemon.await_serving(planned.name)
        with cipherd.connect(daemon.target) as client, client.session(planned.name) as session:
            session.upload_keys()
            assert session.program.key_bytes == planned.key_bytes
            assert session.program.required_keys == planned.required_keys
            scores = session.evaluate(rows)
            one = session.evaluate(rows[:1])
            refuses_items_unlike_the_samples(session, rows)
    finally:
        daemon.stop()
    assert imported.agreement(rows, scores, planned).holds
    assert np.abs(one - scores[:1]).max() <= 2 * MAX_ERROR


def test_the_examples_of_an_own_model_run(tmp_path: pathlib.Path) -> None:
    examples = ROOT / "client" / "python" / "examples"
    for name in ("plan_own_model.py", "predict_own_model.py"):
        shown = (examples / name).read_text()
        assert f"```python\n{shown}```" in (ROOT / "client" / "python" / "README.md").read_text()
    planned = subprocess.run(
        [sys.executable, examples / "plan_own_model.py", tmp_path / "programs"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "143 samples" in planned.stdout and "0 predictions differ" in planned.stdout
    daemon = Daemon(tmp_path / "daemon", tmp_path / "programs")
    try:
        daemon.await_serving("tumour")
        predicted = subprocess.run(
            [sys.executable, examples / "predict_own_model.py", daemon.target],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
    finally:
        daemon.stop()
    assert predicted.stdout.count("True") > 5 * predicted.stdout.count("False")


def test_the_example_of_several_outputs_runs() -> None:
    example = ROOT / "client" / "python" / "examples" / "several_outputs.py"
    assert f"```python\n{example.read_text()}```" in (
        ROOT / "client" / "python" / "README.md"
    ).read_text()
    run = subprocess.run([sys.executable, example], capture_output=True, text=True, check=True)
    assert all(float(error) <= 1e-2 for error in run.stdout.split()) and run.stdout.count("\n") == 2


def test_a_summary_says_what_stands_for_activations() -> None:
    _, imported, _, _ = fitted("mlp_tanh")
    planned = imported.plan(max_error=MAX_ERROR, encrypted_samples=1)
    assert str(imported.activations[0]) in planned.summary.splitlines()


def test_several_targets_come_back_as_columns() -> None:
    x, _ = load_wine(return_X_y=True)
    estimator = make_pipeline(StandardScaler(), SelectKBest(k=6), Ridge())
    estimator.fit(x[:, 2:], (x[:, 0] > 13).astype(int))
    several = Ridge().fit(x[:, 2:], x[:, :2])
    for one, width in ((estimator, 1), (several, 2)):
        imported = from_sklearn(one, samples=x[:, 2:])
        scores = imported.scores(x[:, 2:])
        assert scores.shape == (len(x), width)
        np.testing.assert_allclose(imported.postprocess(scores), one.predict(x[:, 2:]), atol=1e-9)


@pytest.mark.filterwarnings("ignore")
def test_hidden_layers_may_be_squares() -> None:
    x, y = load_wine(return_X_y=True)
    x = StandardScaler().fit_transform(x)
    trained = MLPClassifier((4,), activation="identity", alpha=1, max_iter=200, random_state=0).fit(
        x, y
    )
    hidden = x @ trained.coefs_[0] + trained.intercepts_[0]
    for activation, function in (
        ("square", np.square),
        (Polynomial((0.5, 0.5, 0.25), -9, 9), None),
    ):
        imported = from_sklearn(trained, samples=x, activation=activation)  # type: ignore[arg-type]
        exact = (function or activation)(hidden)  # type: ignore[operator]
        expected = exact @ trained.coefs_[1] + trained.intercepts_[1]
        np.testing.assert_allclose(imported.scores(x), expected, atol=1e-9)
        assert imported.approximation_error < 1e-9
    planned = imported.plan(max_error=MAX_ERROR)
    assert np.abs(planned.evaluate(x) - expected).max() <= 2 * MAX_ERROR


def test_bounds_stand_in_for_samples() -> None:
    x, y = load_breast_cancer(return_X_y=True)
    estimator = make_pipeline(StandardScaler(), LogisticRegression()).fit(x, y)
    imported = from_sklearn(estimator, bounds=(x.min(axis=0), x.max(axis=0)))
    planned = imported.plan(max_error=MAX_ERROR)
    assert imported.agreement(x[:100], planned.evaluate(x[:100]), planned).holds


def test_one_item_of_many_places_is_as_good_as_all() -> None:
    """Items that nobody has would leave the range of a polynomial, and take the others with them."""
    _, imported, rows, _ = fitted("logistic_probabilities")
    at_zero = imported.scores(np.zeros_like(rows[:1]))
    assert abs(at_zero[0, 0]) > 100  # a row of zeros is far from any patient
    planned = imported.plan(max_error=MAX_ERROR)
    assert planned.item_count > 1
    assert np.abs(planned.evaluate(rows[:1]) - imported.scores(rows[:1])).max() <= 2 * MAX_ERROR


X = np.random.default_rng(1).normal(size=(40, 3))
Y = (X.sum(axis=1) > 0).astype(int)


@pytest.mark.parametrize(
    ("make", "options", "says"),
    [
        (lambda: RandomForestClassifier(5).fit(X, Y), {}, "trees compare.*LogisticRegression or an MLPClassifier"),
        (lambda: SVC().fit(X, Y), {}, "LinearSVC .*or MLPClassifier can take its place"),
        (lambda: LogisticRegression(), {}, "this LogisticRegression is not fitted: call its fit"),
        (lambda: PoissonRegressor().fit(X, Y), {}, "predictions are not coef_ times the features plus intercept_"),
        (
            lambda: make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression()).fit(X, Y), {},
            "OneHotEncoder is not supported as a step: apply it before encryption",
        ),
        (
            lambda: make_pipeline(MinMaxScaler(clip=True), LogisticRegression()).fit(X, Y), {},
            "clip features before encryption, and set clip=False",
        ),
        (
            lambda: LogisticRegression().fit(X, np.arange(40) % 3), {"output": "probabilities"},
            "apply softmax to the decrypted scores",
        ),
        (
            lambda: MLPClassifier((2,), max_iter=1).fit(X, Y), {},
            r"pass samples \(as training data\), over which it is measured, or activation_range",
        ),
        (lambda: LinearSVC().fit(X, Y), {"output": "probabilities"}, "LinearSVC has none; take output='scores'"),
        (lambda: LinearSVC().fit(X, Y), {"samples": X[:, :2]}, r"expected shape \[n, 3\], got \[40, 2\]"),
        (
            lambda: LinearSVC().fit(X, Y), {"samples": np.where(X > 1, np.nan, X)},
            "fill in missing ones before they are encrypted",
        ),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore")
def test_what_cannot_run_says_what_to_do(make: Any, options: dict[str, Any], says: str) -> None:
    with pytest.raises((UnsupportedModelError, cipherd.InvalidInputError), match=says):
        from_sklearn(make(), **options)
