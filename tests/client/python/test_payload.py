"""Encrypting to bytes and decrypting from them."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

import cipherd
from test_evaluate import MIX_TOLERANCE

A = np.arange(20).reshape(5, 4) / 20


@pytest.fixture
def keys(mix: cipherd.Session, tmp_path: pathlib.Path) -> pathlib.Path:
    mix.save(tmp_path)
    return tmp_path


def test_a_gateway_needs_no_secret_key(
    client: cipherd.Client, mix: cipherd.Session, keys: pathlib.Path
) -> None:
    with cipherd.Cipher.load(keys, allow_insecure_contexts=True) as cipher:
        request = cipher.encrypt({"a": A, "b": A})
        answer, report = client.evaluate_encrypted(
            client.program("mix"), mix.key_set_id, request, request_id="gateway"
        )
        assert report.request_id == "gateway"
        outputs = cipher.decrypt(answer)
    np.testing.assert_allclose(outputs["product"], A * A, atol=MIX_TOLERANCE)
    assert outputs["sum"].shape == A.shape
    np.testing.assert_array_equal(mix.decrypt(answer)["sum"], outputs["sum"])


def test_encryption_is_never_twice_the_same(mix: cipherd.Session) -> None:
    assert mix.encrypt({"a": A, "b": A}) != mix.encrypt({"a": A, "b": A})


def test_shared_results_have_noise_that_hides_the_error(
    client: cipherd.Client, mix: cipherd.Session
) -> None:
    answer, _ = client.evaluate_encrypted(
        mix.program, mix.key_set_id, mix.encrypt({"a": A, "b": A})
    )
    plain = mix.decrypt(answer)["sum"]
    np.testing.assert_array_equal(mix.decrypt(answer)["sum"], plain)
    shared = mix.decrypt_for_sharing(answer, error_bound=100.0, statistical_bits=16)["sum"]
    # sigma = 100 sqrt(N = 1024) 2^15 on each coefficient; a slot is a sum of N of them over the
    # scale 2^40, so of deviation sigma sqrt(N) / 2^40 = 3.1e-3.
    difference = np.abs(shared - plain)
    assert 1e-4 < difference.max() < 10 * 3.1e-3
    np.testing.assert_allclose(shared, 2 * A, atol=10 * 3.1e-3)


def test_odd_noise_is_refused(client: cipherd.Client, mix: cipherd.Session) -> None:
    answer, _ = client.evaluate_encrypted(
        mix.program, mix.key_set_id, mix.encrypt({"a": A, "b": A})
    )
    with pytest.raises(cipherd.InvalidInputError, match="statistical_bits"):
        mix.decrypt_for_sharing(answer, error_bound=1.0, statistical_bits=39)


def test_more_items_than_a_ciphertext_holds_are_refused(mix: cipherd.Session) -> None:
    nine = np.zeros((9, 4))
    with pytest.raises(
        cipherd.InvalidInputError, match=r"inputs\['a'\]: expected 1 to 8 items, got 9"
    ):
        mix.encrypt({"a": nine, "b": nine})


def test_damaged_bytes_are_refused(client: cipherd.Client, mix: cipherd.Session) -> None:
    request = mix.encrypt({"a": A, "b": A})
    answer, _ = client.evaluate_encrypted(mix.program, mix.key_set_id, request)
    flipped = bytearray(answer)
    flipped[len(answer) // 2] ^= 1
    for damaged in (bytes(flipped), answer[:-1], answer + b"x", b"", b"nothing of the kind" * 10):
        with pytest.raises(cipherd.InvalidInputError, match="'payload'"):
            mix.decrypt(damaged)
    with pytest.raises(cipherd.InvalidInputError):
        mix.decrypt(request)  # inputs are no outputs


def test_a_closed_cipher_has_no_key(keys: pathlib.Path) -> None:
    cipher = cipherd.Cipher.load(keys, allow_insecure_contexts=True)
    cipher.close()
    cipher.close()
    with pytest.raises(cipherd.FailedPreconditionError, match="closed"):
        cipher.encrypt({"a": A, "b": A})


def test_a_program_is_kept_and_read(client: cipherd.Client, tmp_path: pathlib.Path) -> None:
    program = client.program("mix", version=3)
    program.save(tmp_path / "program")
    read = cipherd.Program.load(tmp_path / "program", allow_insecure_contexts=True)
    for attribute in (
        "name",
        "version",
        "inputs",
        "outputs",
        "required_keys",
        "key_bytes",
        "context_id",
    ):
        assert getattr(read, attribute) == getattr(program, attribute), attribute
    with pytest.raises(cipherd.InvalidInputError, match="secur"):
        cipherd.Program.load(tmp_path / "program")
    with pytest.raises(cipherd.NotFoundError):
        cipherd.Program.load(tmp_path / "none")
