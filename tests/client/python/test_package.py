"""The package as it is installed: types, documentation, examples."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import inspect
import pathlib
import re
import subprocess
import sys
import tomllib
import types
from typing import Any

import numpy as np
import pytest

import cipherd
from conftest import ROOT, Daemon
from fashion import Fashion

SOURCES = ROOT / "client" / "python"


def test_stubs_are_those_of_the_extension(tmp_path: pathlib.Path) -> None:
    generated = tmp_path / "_cipherd.pyi"
    subprocess.run(
        [
            sys.executable,
            "-m",
            "nanobind.stubgen",
            "-q",
            "-m",
            "cipherd._cipherd",
            "-o",
            str(generated),
        ],
        check=True,
    )
    checked_in = SOURCES / "cipherd" / "_cipherd.pyi"
    assert generated.read_text() == checked_in.read_text(), f"cp {generated} {checked_in}"


def test_types_hold() -> None:
    subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--config-file",
            str(SOURCES / "pyproject.toml"),
            "--no-incremental",
            str(SOURCES / "cipherd"),
            str(SOURCES / "examples"),
            str(pathlib.Path(__file__).parent),
            # Which the tests here import.
            str(ROOT / "tests" / "python" / "tokens.py"),
        ],
        check=True,
    )


def test_the_installed_package_is_typed_and_of_this_version() -> None:
    assert cipherd.__file__ is not None
    installed = pathlib.Path(cipherd.__file__).parent
    assert SOURCES not in installed.parents
    assert (installed / "py.typed").exists()
    assert (installed / "_cipherd.pyi").exists()
    match = re.search(r"project\(cipherd VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())
    assert match is not None
    assert importlib.metadata.version("cipherd") == match[1]


def test_the_package_is_tested_with_what_it_is_built_with() -> None:
    with open(SOURCES / "pyproject.toml", "rb") as file:
        required = set(tomllib.load(file)["build-system"]["requires"])
    tested = (pathlib.Path(__file__).parent / "requirements.txt").read_text().split()
    assert len(required) == 2
    assert required < set(tested)


def undocumented(module: types.ModuleType) -> list[str]:
    def documented(name: str, thing: Any) -> list[str]:
        missing = [] if inspect.getdoc(thing) else [name]
        if inspect.isclass(thing):
            for member, value in vars(thing).items():
                if not member.startswith("_") and (
                    callable(value) or isinstance(value, (property, staticmethod))
                ):
                    missing += documented(f"{name}.{member}", value)
        return missing

    return [one for name in module.__all__ for one in documented(name, getattr(module, name))]


def test_everything_public_is_documented() -> None:
    assert undocumented(cipherd) == []


def test_the_example_of_the_readme_runs(
    daemon: Daemon, fashion: Fashion, tmp_path: pathlib.Path
) -> None:
    example = SOURCES / "examples" / "classify.py"
    shown = example.read_text()
    assert f"```python\n{shown}```" in (ROOT / "README.md").read_text()
    assert len(shown.splitlines()) <= 12
    images = fashion.images(20)
    np.save(tmp_path / "images.npy", images)
    run = subprocess.run(
        [sys.executable, str(example), daemon.target, str(tmp_path / "images.npy")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout == f"{fashion.logits(images).argmax(axis=1)}\n"


def test_importing_needs_no_daemon_and_starts_no_thread() -> None:
    counted = subprocess.run(
        [sys.executable, "-c", "import cipherd, os; print(len(os.listdir('/proc/self/task')))"],
        capture_output=True,
        text=True,
        check=True,
        env={"OPENBLAS_NUM_THREADS": "1"},
    )
    assert counted.stdout == "1\n"


@pytest.mark.parametrize("name", sorted(cipherd.errors._BY_CODE))
def test_every_code_has_an_error(name: str) -> None:
    error = cipherd.errors.from_status(name, "", "p", "m", None)
    assert isinstance(error, cipherd.Error)
    assert (error.code, error.path, error.message) == (name, "p", "m")


def test_reasons_of_the_wire_are_known() -> None:
    """A reason that is added to the protocol is thought of here."""
    text = (ROOT / "proto/cipherd/v1/evaluation.proto").read_text()
    reasons = set(re.findall(r"ERROR_REASON_([A-Z_]+) = \d+;", text)) - {"UNSPECIFIED"}
    # Told by their codes: arguments that do not fit, and faults.
    by_code = {
        "MALFORMED_VALUE",
        "SIGNATURE_MISMATCH",
        "SECRET_KEY_REFUSED",
        "PROTOCOL",
        "UNSUPPORTED",
        "UNKNOWN_UPLOAD",
    }
    assert reasons == set(cipherd.errors._BY_REASON) | by_code
