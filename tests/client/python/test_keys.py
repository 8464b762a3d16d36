"""Keys: uploaded, dropped, kept, and shared with cipherctl."""

from __future__ import annotations

import json
import pathlib
import subprocess

import numpy as np
import pytest

import cipherd
from conftest import CIPHERCTL, Daemon
from test_evaluate import MIX_TOLERANCE

ONES = np.ones((3, 4))
INPUTS = {"a": ONES, "b": ONES}


def cipherctl(*arguments: str) -> str:
    run = subprocess.run(
        [CIPHERCTL, *arguments, "--allow-insecure-contexts"], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


def check(session: cipherd.Session) -> None:
    outputs = session.evaluate(INPUTS)
    np.testing.assert_allclose(outputs["sum"], 2 * ONES, atol=MIX_TOLERANCE)


def test_progress_of_the_upload_is_reported(client: cipherd.Client) -> None:
    reports: list[tuple[int, int]] = []
    with client.session("fashion_mlp") as session:
        session.upload_keys(lambda sent, total: reports.append((sent, total)))
        assert len(session.key_set_id) == 64
        sent = [one[0] for one in reports]
        assert sent == sorted(sent)
        assert reports[-1] == (session.program.key_bytes, session.program.key_bytes)
        assert len(reports) >= len(session.program.required_keys)
        session.drop_keys()
        assert session.key_set_id == ""


def test_what_progress_raises_ends_the_upload(client: cipherd.Client) -> None:
    class StopUploadError(Exception):
        pass

    calls = []

    def progress(sent: int, total: int) -> None:
        calls.append(sent)
        raise StopUploadError

    with client.session("fashion_mlp") as session:
        with pytest.raises(StopUploadError):
            session.upload_keys(progress)
        assert session.key_set_id == ""
        assert len(calls) == 1


def test_dropped_keys_are_unknown_until_uploaded_again(client: cipherd.Client) -> None:
    with client.session("mix") as session:
        session.upload_keys()
        client.drop_keys(session.key_set_id)
        with pytest.raises(cipherd.UnknownKeySetError) as raised:
            session.evaluate(INPUTS)
        assert raised.value.reason == "UNKNOWN_KEY_SET"
        session.upload_keys()
        check(session)
        session.drop_keys()
        with pytest.raises(cipherd.FailedPreconditionError, match="uploaded no keys"):
            session.drop_keys()


def test_a_saved_session_goes_on(
    client: cipherd.Client, mix: cipherd.Session, tmp_path: pathlib.Path
) -> None:
    mix.save(tmp_path / "keys")
    assert (tmp_path / "keys" / "secret.key").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "keys").stat().st_mode & 0o777 == 0o700
    with client.load_session(tmp_path / "keys") as session:
        assert session.key_set_id == mix.key_set_id
        assert session.program.name == "mix"
        check(session)
    with client.session("mix", secret_key=tmp_path / "keys" / "secret.key") as session:
        assert session.key_set_id == ""
        session.upload_keys()
        check(session)


def test_a_session_is_saved_again_but_another_key_is_never_overwritten(
    client: cipherd.Client, tmp_path: pathlib.Path
) -> None:
    with client.session("mix") as session:
        session.save(tmp_path)
        secret = (tmp_path / "secret.key").read_bytes()
        session.upload_keys()
        session.save(tmp_path)
        assert (tmp_path / "key_set_id").read_text().strip() == session.key_set_id
    with client.session("mix") as other:
        with pytest.raises(cipherd.AlreadyExistsError, match="secret.key"):
            other.save(tmp_path)
    assert (tmp_path / "secret.key").read_bytes() == secret


def test_a_secret_key_that_others_may_read_is_refused(
    client: cipherd.Client, mix: cipherd.Session, tmp_path: pathlib.Path
) -> None:
    mix.save(tmp_path)
    (tmp_path / "secret.key").chmod(0o640)
    with pytest.raises(cipherd.FailedPreconditionError, match="expected mode 0600, got 0640"):
        client.load_session(tmp_path)


def test_a_secret_key_of_another_program_is_refused(
    client: cipherd.Client, mix: cipherd.Session, tmp_path: pathlib.Path
) -> None:
    mix.save(tmp_path)
    with pytest.raises(cipherd.InvalidInputError, match="secret key: expected one of context"):
        client.session("fashion_mlp", secret_key=tmp_path / "secret.key")


def test_cipherctl_goes_on_with_keys_of_python(
    daemon: Daemon, mix: cipherd.Session, tmp_path: pathlib.Path
) -> None:
    keys, request, answer = (str(tmp_path / name) for name in ("keys", "in.ct", "out.ct"))
    mix.save(keys)
    (tmp_path / "a.csv").write_text("1, 2, 3, 4\n5, 6, 7, 8\n")
    inputs = [f"--input={name}={tmp_path / 'a.csv'}" for name in ("a", "b")]
    cipherctl("encrypt", "--keys", keys, *inputs, "--output", request)
    cipherctl(
        "evaluate",
        "--keys",
        keys,
        "--input",
        request,
        "--output",
        answer,
        "--server",
        daemon.target,
    )
    outputs = json.loads(cipherctl("decrypt", "--keys", keys, "--input", answer))
    np.testing.assert_allclose(outputs["sum"], [[2, 4, 6, 8], [10, 12, 14, 16]], atol=1e-4)
    # And what cipherctl has encrypted and had evaluated, Python decrypts.
    with open(answer, "rb") as file:
        np.testing.assert_array_equal(mix.decrypt(file.read())["sum"], outputs["sum"])


def test_python_goes_on_with_keys_of_cipherctl(
    daemon: Daemon, client: cipherd.Client, tmp_path: pathlib.Path
) -> None:
    keys = str(tmp_path / "keys")
    cipherctl("keygen", "--program", "mix", "--keys", keys, "--server", daemon.target)
    with client.load_session(keys) as session:
        assert session.key_set_id == ""
    key_set_id = cipherctl("put-keys", "--keys", keys, "--server", daemon.target).strip()
    with client.load_session(keys) as session:
        assert session.key_set_id == key_set_id
        check(session)
