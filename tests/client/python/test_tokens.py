"""A daemon that knows its tenants by tokens, as a client meets it."""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Callable

import numpy as np
import pytest

import cipherd
from conftest import ROOT, Daemon

sys.path.insert(0, str(ROOT / "tests" / "python"))
from tokens import Issuer  # noqa: E402


@pytest.fixture
def issuer(tmp_path: pathlib.Path) -> Issuer:
    return Issuer(str(tmp_path / "issuer"))


@pytest.fixture
def daemon(start_daemon: Callable[..., Daemon], issuer: Issuer) -> Daemon:
    daemon = start_daemon(*issuer.flags)
    daemon.await_serving("mix")
    return daemon


def test_a_token_is_the_tenant(daemon: Daemon, issuer: Issuer, tmp_path: pathlib.Path) -> None:
    file = tmp_path / "token"
    file.write_text(issuer.token("alice") + "\n")
    items = np.ones((8, 4))
    with (
        cipherd.connect(daemon.target, token_file=file, allow_insecure_contexts=True) as client,
        client.session("mix") as session,
    ):
        session.upload_keys()
        result = session.evaluate({"a": items, "b": items})
        assert np.abs(result["product"] - 1).max() < 1e-3
        # Whoever renews it only writes the file; here it becomes somebody else's.
        file.write_text(issuer.token("bob"))
        with pytest.raises(cipherd.UnknownKeySetError):
            session.evaluate({"a": items, "b": items})
        file.write_text(issuer.token("alice", seconds=-3600))
        with pytest.raises(cipherd.AccessDeniedError, match="exp: expected after") as caught:
            session.evaluate({"a": items, "b": items})
        assert caught.value.code == "UNAUTHENTICATED"


def test_without_a_good_token_nobody_connects(daemon: Daemon, issuer: Issuer) -> None:
    with pytest.raises(cipherd.AccessDeniedError, match="expected 'Bearer' and a token, got none"):
        cipherd.connect(daemon.target)
    with pytest.raises(cipherd.AccessDeniedError) as caught:
        cipherd.connect(daemon.target, token="no.good.token")
    assert "no.good.token" not in str(caught.value)
    cipherd.connect(daemon.target, token=issuer.token("alice")).close()


def test_a_token_that_cannot_be_one_is_refused_here() -> None:
    with pytest.raises(cipherd.NotFoundError, match="/no/such/token"):
        cipherd.connect("127.0.0.1:1", token_file="/no/such/token")
    with pytest.raises(cipherd.InvalidInputError, match="bearer_token"):
        cipherd.connect("127.0.0.1:1", token="with space")
