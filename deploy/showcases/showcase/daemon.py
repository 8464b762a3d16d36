"""A daemon on this machine, for as long as a ``with`` block."""

import pathlib
import subprocess
import time
from types import TracebackType

from showcase.programs import BUILD

_START_SECONDS = 120
_STOP_SECONDS = 60
_LOG_LINE_COUNT = 20


class Daemon:
    """Serves ``programs`` on a free port of 127.0.0.1, once the block is entered.

    with Daemon(programs, device="cpu") as daemon:
        cipherd.connect(daemon.target)
    """

    def __init__(self, programs: pathlib.Path, *, device: str) -> None:
        self._programs = programs
        self._device = device
        self._binary = BUILD / "server" / "cipherd"
        self._log = programs.parent / "cipherd.log"
        self._port_file = programs.parent / "port"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def target(self) -> str:
        """Its address, for ``cipherd.connect``."""
        return f"127.0.0.1:{self._port_file.read_text().strip()}"

    def __enter__(self) -> "Daemon":
        print(f"== starting the daemon on device {self._device}", flush=True)
        command = [self._binary, "--device", self._device, "--listen", "127.0.0.1:0"]
        command += ["--metrics-listen", "none", "--port-file", self._port_file]
        command += ["--programs", self._programs]
        with open(self._log, "wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            deadline = time.monotonic() + _START_SECONDS
            while not self._is_ready():
                if self._process.poll() is not None:
                    raise RuntimeError("the daemon has ended")
                if time.monotonic() > deadline:
                    raise RuntimeError(f"the daemon is not ready after {_START_SECONDS} seconds")
                time.sleep(0.1)
        except BaseException:
            self._stop()
            self._print_log()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()
        if error is not None:
            self._print_log()

    def _is_ready(self) -> bool:
        """Whether it answers, and every program is ready."""
        if not self._port_file.exists() or not self._port_file.read_text().strip():
            return False
        probe = [self._binary, "--probe", self.target, "--probe-service"]
        return all(
            subprocess.run([*probe, one.name], capture_output=True).returncode == 0
            for one in self._programs.iterdir()
        )

    def _stop(self) -> None:
        if self._process is None or self._process.poll() is not None:
            return
        self._process.terminate()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _print_log(self) -> None:
        print("\n".join(self._log.read_text(errors="replace").splitlines()[-_LOG_LINE_COUNT:]))
