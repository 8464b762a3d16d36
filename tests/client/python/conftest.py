"""A daemon of its own for the tests, with two programs."""

from __future__ import annotations

import os
import pathlib
import subprocess
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import cipherd

from fashion import Fashion

ROOT = pathlib.Path(__file__).resolve().parents[3]
CIPHERD = os.environ["CIPHERD_BINARY"]
CIPHERCTL = os.environ["CIPHERCTL_BINARY"]

# Output `sum` is a + b, output `product` a * b; 8 vectors of 4 numbers a ciphertext, in an insecure
# context.
MIX = """
name: "mix"
version: 3
description: "sums and products"
context {
  log_n: 10
  q_primes: [1099511592961, 2251799813632001]
  p_primes: [2251799813640193]
  rescale_groups: [1]
  digits { prime_ids: [0] }
  digits { prime_ids: [1] }
  galois_generator: 5
  default_scale: 1099511627776.0
  secret_distribution: SECRET_DISTRIBUTION_UNIFORM_TERNARY
}
inputs {
  name: "a"
  layout { item_count: 8 item_stride: 1 element_count: 4 element_stride: 8 }
}
inputs {
  name: "b"
  layout { item_count: 8 item_stride: 1 element_count: 4 element_stride: 8 }
}
operations { name: "added" add { a: "a" b: "b" } }
operations { name: "multiplied" multiply { a: "a" b: "b" } }
operations { name: "linear" relinearize { a: "multiplied" } }
operations { name: "scaled" rescale { a: "linear" } }
outputs {
  name: "sum" edge: "added"
  layout { item_count: 8 item_stride: 1 element_count: 4 element_stride: 8 }
}
outputs {
  name: "product" edge: "scaled"
  layout { item_count: 8 item_stride: 1 element_count: 4 element_stride: 8 }
}
"""


class Daemon:
    """A process that serves ``programs``, on a free port or a Unix socket."""

    def __init__(
        self,
        directory: pathlib.Path,
        programs: pathlib.Path,
        *flags: str,
        listen: str = "127.0.0.1:0",
    ) -> None:
        directory.mkdir(exist_ok=True)
        self.log = directory / "cipherd.log"
        port_file = directory / "port"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [
                    CIPHERD,
                    "--device",
                    "cpu",
                    "--listen",
                    listen,
                    "--metrics-listen",
                    "none",
                    "--port-file",
                    str(port_file),
                    "--programs",
                    str(programs),
                    "--allow-insecure-contexts",
                    *flags,
                ],
                stdout=log,
                stderr=log,
            )
        self.target = listen
        if not listen.startswith("unix:"):
            self._await(lambda: port_file.exists() and port_file.read_text() != "")
            self.target = f"127.0.0.1:{port_file.read_text().strip()}"

    def await_serving(self, program: str, *flags: str) -> None:
        probe = [CIPHERD, "--probe", self.target, "--probe-service", program, *flags]
        self._await(lambda: subprocess.run(probe, capture_output=True).returncode == 0)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        self.process.terminate()
        assert self.process.wait(timeout=60) == 0, self.log.read_text()

    def _await(self, is_so: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 240
        while not is_so():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                pytest.fail(self.log.read_text())
            time.sleep(0.05)


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    directory = tmp_path_factory.mktemp("programs")
    (directory / "fashion_mlp").symlink_to(ROOT / "deploy/programs/fashion_mlp")
    (directory / "mix").mkdir()
    (directory / "mix" / "program.textproto").write_text(MIX)
    return directory


@pytest.fixture
def start_daemon(
    tmp_path_factory: pytest.TempPathFactory, programs: pathlib.Path
) -> Iterator[Callable[..., Daemon]]:
    """Starts daemons, with flags; none outlives the test."""
    daemons: list[Daemon] = []

    def start(*flags: str, listen: str = "127.0.0.1:0") -> Daemon:
        daemon = Daemon(tmp_path_factory.mktemp("daemon"), programs, *flags, listen=listen)
        daemons.append(daemon)
        return daemon

    yield start
    for daemon in daemons:
        daemon.kill()


@pytest.fixture(scope="session")
def daemon(tmp_path_factory: pytest.TempPathFactory, programs: pathlib.Path) -> Iterator[Daemon]:
    daemon = Daemon(tmp_path_factory.mktemp("daemon"), programs)
    try:
        for program in ("fashion_mlp", "mix"):
            daemon.await_serving(program)
        yield daemon
        daemon.stop()
    finally:
        daemon.kill()


@pytest.fixture(scope="session")
def client(daemon: Daemon) -> Iterator[cipherd.Client]:
    """Takes the insecure program too."""
    with cipherd.connect(daemon.target, allow_insecure_contexts=True) as client:
        yield client


@pytest.fixture(scope="session")
def fashion_session(client: cipherd.Client) -> Iterator[cipherd.Session]:
    with client.session("fashion_mlp") as session:
        session.upload_keys()
        yield session


@pytest.fixture
def mix(client: cipherd.Client) -> Iterator[cipherd.Session]:
    """A session of the small program with its keys uploaded."""
    with client.session("mix") as session:
        session.upload_keys()
        yield session


@pytest.fixture(scope="session")
def fashion() -> Fashion:
    return Fashion(ROOT / "deploy/programs/fashion_mlp/weights.safetensors")


@pytest.fixture
def random() -> np.random.Generator:
    return np.random.default_rng(1)
