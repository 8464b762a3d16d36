"""Programs of models, made by cipherctl."""

import os
import pathlib
import subprocess

import numpy as np
import numpy.typing as npt

from cipherd.models import Model

BUILD = pathlib.Path(os.environ["CIPHERD_BUILD"])


def plan(
    model: Model,
    samples: npt.NDArray[np.float64],
    programs: pathlib.Path,
    *,
    device: str,
    max_error: float,
    encrypted_sample_count: int = 64,
) -> None:
    """Writes ``programs/<name of the model>``, and prints what cipherctl says of it.

    ``samples`` are typical rows; magnitudes are taken from all of them, and so many of them are encrypted to
    measure the errors.
    """
    file = programs.parent / f"{model.name}.json"
    model.save(file)
    rows = file.with_suffix(".npy")
    np.save(rows, samples)
    print(f"== cipherctl plan {model.name}", flush=True)
    subprocess.run(
        [
            BUILD / "client" / "cipherctl",
            "plan",
            file,
            "--samples",
            f"{model.inputs[0].edge.name}={rows}",
            "--output",
            programs / model.name,
            "--max-error",
            str(max_error),
            "--encrypted-samples",
            str(encrypted_sample_count),
            "--device",
            device,
        ],
        check=True,
    )
