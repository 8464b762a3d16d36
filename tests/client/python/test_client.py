"""Connections: what a daemon says, and what is said where there is none."""

from __future__ import annotations

import pathlib
import subprocess
import time
from collections.abc import Callable

import numpy as np
import pytest

import cipherd
from conftest import Daemon


def test_programs_are_listed(client: cipherd.Client) -> None:
    listed = {one.name: one for one in client.programs()}
    assert set(listed) == {"fashion_mlp", "mix"}
    assert listed["mix"] == cipherd.ProgramSummary("mix", 3, "sums and products", True)


def test_a_program_says_what_it_takes(client: cipherd.Client) -> None:
    program = client.program("fashion_mlp")
    assert (program.name, program.version) == ("fashion_mlp", 1)
    (images,) = program.inputs
    assert (images.name, images.depth, images.scale) == ("images", 0, 2.0**42)
    assert images.layout == cipherd.Layout(8, 1, 784, 8)
    (logits,) = program.outputs
    assert (logits.name, logits.layout.element_count) == ("logits", 10)
    assert logits.magnitude_bound == 64
    assert program.items_per_request == 8
    assert program.ring_degree == 2**14
    assert len(program.required_keys) == 19
    assert "relinearization" in program.required_keys
    assert program.key_bytes % 19 == 0
    # Two components of four limbs; two of one limb.
    assert program.input_bytes == 2 * 4 * 2**14 * 8
    assert program.output_bytes == 2 * 1 * 2**14 * 8
    assert repr(program) == "<cipherd.Program fashion_mlp 1: images[n, 784] -> logits[n, 10]>"


def test_the_daemon_says_what_it_is(client: cipherd.Client) -> None:
    info = client.server_info
    assert info.device == "cpu:0"
    assert info.max_request_bytes == 2**30
    assert info.insecure_contexts_allowed


def test_unknown_programs_and_versions_are_typed(client: cipherd.Client) -> None:
    for call in (lambda: client.program("none"), lambda: client.session("mix", version=9)):
        with pytest.raises(cipherd.UnknownProgramError) as raised:
            call()
        assert raised.value.reason == "UNKNOWN_PROGRAM"
        assert raised.value.code == "NOT_FOUND"
    with pytest.raises(cipherd.UnknownProgramError, match="'none'; served: .*'fashion_mlp'"):
        client.program("none")
    with pytest.raises(cipherd.UnknownProgramError, match="'mix' version 9; served: version 3"):
        client.session("mix", version=9)


def test_insecure_programs_are_refused_unless_allowed(daemon: Daemon) -> None:
    with cipherd.connect(daemon.target) as client:
        with pytest.raises(cipherd.InvalidInputError, match="program.context"):
            client.program("mix")
        client.program("fashion_mlp")


def test_nobody_answers(tmp_path: pathlib.Path) -> None:
    with pytest.raises(cipherd.UnavailableError, match="no daemon answers"):
        cipherd.connect(f"unix:{tmp_path}/none.sock", timeout=0.2)


def test_plain_text_leaves_this_machine_by_leave_only() -> None:
    with pytest.raises(cipherd.InvalidInputError, match="use TLS"):
        cipherd.connect("192.0.2.1:7480")


def test_a_closed_client_says_so(daemon: Daemon) -> None:
    client = cipherd.connect(daemon.target, allow_insecure_contexts=True)
    session = client.session("mix")
    client.close()
    client.close()
    for call in (client.programs, lambda: client.session("mix"), session.upload_keys):
        with pytest.raises(cipherd.FailedPreconditionError, match="closed"):
            call()
    session.close()


def test_a_daemon_that_stops_is_unavailable_and_another_takes_over(
    tmp_path: pathlib.Path, start_daemon: Callable[..., Daemon]
) -> None:
    socket = f"unix:{tmp_path}/daemon.sock"
    first = start_daemon(listen=socket)
    inputs = {"a": np.ones(4), "b": np.ones(4)}
    first.await_serving("mix")
    with cipherd.connect(socket, allow_insecure_contexts=True) as client:
        session = client.session("mix")
        session.upload_keys()
        session.evaluate(inputs)
        first.stop()
        with pytest.raises(cipherd.UnavailableError):
            session.evaluate(inputs)
        second = start_daemon(listen=socket)
        second.await_serving("mix")
        with pytest.raises(cipherd.UnknownKeySetError):
            while True:  # gRPC waits a second before it connects again
                try:
                    session.evaluate(inputs)
                except cipherd.UnavailableError:
                    time.sleep(0.1)
        session.upload_keys()
        session.evaluate(inputs)
        session.close()
    second.stop()


def test_overload_says_when_to_come_again(start_daemon: Callable[..., Daemon]) -> None:
    daemon = start_daemon("--tenant-rate", "0.01", "--tenant-burst", "1")
    daemon.await_serving("mix")
    with cipherd.connect(daemon.target, allow_insecure_contexts=True) as client:
        with client.session("mix") as session:
            session.upload_keys()
            session.evaluate({"a": np.ones(4), "b": np.ones(4)})
            with pytest.raises(cipherd.OverloadedError) as raised:
                session.evaluate({"a": np.ones(4), "b": np.ones(4)})
            assert raised.value.retry_delay is not None
            assert 1 < raised.value.retry_delay <= 100
    daemon.stop()


class Authority:
    """Signs certificates, by openssl."""

    def __init__(self, directory: pathlib.Path) -> None:
        self.directory = directory
        self.certificate = directory / "ca.pem"
        self._openssl(
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=authority",
            "-keyout",
            directory / "ca.key",
            "-out",
            self.certificate,
        )

    def sign(self, name: str) -> tuple[pathlib.Path, pathlib.Path]:
        key, request, certificate = (
            self.directory / f"{name}.{end}" for end in ("key", "csr", "pem")
        )
        self._openssl(
            "req",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-subj",
            f"/CN={name}",
            "-addext",
            f"subjectAltName=DNS:{name}",
            "-keyout",
            key,
            "-out",
            request,
        )
        self._openssl(
            "x509",
            "-req",
            "-in",
            request,
            "-CA",
            self.certificate,
            "-CAkey",
            self.directory / "ca.key",
            "-CAcreateserial",
            "-days",
            "2",
            "-copy_extensions",
            "copy",
            "-out",
            certificate,
        )
        return certificate, key

    def _openssl(self, *arguments: object) -> None:
        subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


def test_mutual_tls(tmp_path: pathlib.Path, start_daemon: Callable[..., Daemon]) -> None:
    authority = Authority(tmp_path)
    server_certificate, server_key = authority.sign("daemon.test")
    certificate, key = authority.sign("alice.test")
    daemon = start_daemon(
        "--tls-cert",
        str(server_certificate),
        "--tls-key",
        str(server_key),
        "--tls-client-ca",
        str(authority.certificate),
    )
    tls = cipherd.Tls(authority.certificate, certificate, key, "daemon.test")
    with cipherd.connect(
        daemon.target, tls=tls, allow_insecure_contexts=True, timeout=120
    ) as client:
        while not client.programs() or not all(one.ready for one in client.programs()):
            time.sleep(0.1)
        with client.session("mix") as session:
            session.upload_keys()
            outputs = session.evaluate({"a": np.ones(4), "b": np.ones(4)}, request_id="of-alice")
            np.testing.assert_allclose(outputs["sum"], 2 * np.ones(4), atol=1e-4)
    line = next(line for line in daemon.log.read_text().splitlines() if "of-alice" in line)
    assert "alice.test" in line
    # Without a certificate of its own, with another authority, or with another name: nobody
    # answers.
    (tmp_path / "other").mkdir()
    other = Authority(tmp_path / "other")
    for refused in (
        cipherd.Tls(authority.certificate, server_name="daemon.test"),
        cipherd.Tls(other.certificate, certificate, key, "daemon.test"),
        cipherd.Tls(authority.certificate, certificate, key, "other.test"),
    ):
        with pytest.raises(cipherd.UnavailableError):
            cipherd.connect(daemon.target, tls=refused, timeout=0.5)
    with pytest.raises(
        cipherd.InvalidInputError, match="both certificate_file and private_key_file"
    ):
        cipherd.connect(daemon.target, tls=cipherd.Tls(authority.certificate, certificate))
    with pytest.raises(cipherd.NotFoundError, match="none.pem"):
        cipherd.connect(daemon.target, tls=cipherd.Tls(tmp_path / "none.pem"))
    daemon.stop()
