"""Processes of tests: daemons and loads on loopback, in directories of their own.

All of them end with the test, whatever becomes of it. Needs CIPHERD_SOURCE_DIR, CIPHERD_BINARY and CIPHERCTL_BINARY in the
environment.
"""

import contextlib
import ctypes
import json
import os
import re
import signal
import subprocess
import time
import urllib.request

SOURCE = os.environ["CIPHERD_SOURCE_DIR"]
DEPLOY = os.path.join(SOURCE, "deploy")
PROGRAMS = os.path.join(SOURCE, "tests", "observability", "programs")

# On a machine that is busy with others.
PATIENCE_SECONDS = 120
# In percent: intervals of a load do not agree so well.
NEVER_STABLE = "1e-9"

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


def _die_with_parent():
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def wait_until(predicate, what, seconds=PATIENCE_SECONDS):
    """What `predicate` gives as soon as it gives something."""
    end = time.monotonic() + seconds
    while True:
        result = predicate()
        if result:
            return result
        if time.monotonic() > end:
            raise AssertionError(f"waited {seconds} seconds in vain: {what() if callable(what) else what}")
        time.sleep(0.1)


def cipherctl(*arguments, check=True):
    run = subprocess.run(
        [os.environ["CIPHERCTL_BINARY"], *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, preexec_fn=_die_with_parent)
    if check and run.returncode != 0:
        raise RuntimeError(f"cipherctl {arguments[0]}: {run.stdout}")
    return run


class Process:
    """A child, its output in a file."""

    def __init__(self, arguments, log, stdout=None, **popen):
        self.log_path = log
        self._log = open(log, "ab")
        self.process = subprocess.Popen(
            arguments, stdout=stdout or self._log, stderr=self._log, preexec_fn=_die_with_parent, **popen)

    def log(self):
        with open(self.log_path, errors="replace") as file:
            return file.read()

    def send_signal(self, number):
        self.process.send_signal(number)

    def stop(self, number=signal.SIGTERM):
        """The exit status."""
        if self.process.poll() is None:
            self.send_signal(number)
        try:
            return self.process.wait(timeout=PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        finally:
            if self.process.stdout:
                self.process.stdout.close()
            self._log.close()


class Served(Process):
    """What answers calls at `address`, with files in `directory`; `connection` is how cipherctl gets there."""

    address = None
    connection = ()

    def __init__(self, directory, arguments, **popen):
        self.directory = directory
        os.makedirs(directory, exist_ok=True)
        super().__init__(arguments, self.path("log"), **popen)

    def path(self, name):
        return os.path.join(self.directory, name)

    def ctl(self, command, *arguments, check=True):
        return cipherctl(command, "--server", self.address, *self.connection, *arguments, check=check)

    def load(self, *arguments):
        """Runs to its last trial. The report."""
        report = self.path("load.json")
        self.ctl("load", "--json", report, "--stability-percentage", NEVER_STABLE, *arguments)
        with open(report) as file:
            return json.load(file)

    @contextlib.contextmanager
    def under_load(self, *arguments):
        """A load beside what is done under it."""
        load = Process(
            [os.environ["CIPHERCTL_BINARY"], "load", "--server", self.address, *self.connection, "--max-trials", "100000",
             "--stability-percentage", NEVER_STABLE, *arguments],
            self.path("load.log"))
        try:
            yield load
            if load.process.poll() is not None:
                raise AssertionError("the load has ended: " + load.log())
        finally:
            load.stop(signal.SIGINT)


class Daemon(Served):
    """cipherd, or a binary with its flags and output, on ports that are free; serving from here on."""

    def __init__(self, directory, *flags, programs=PROGRAMS, binary="CIPHERD_BINARY", metrics="127.0.0.1:0"):
        super().__init__(
            directory,
            [os.environ[binary], "--device", "cpu", "--programs", programs, "--listen", "127.0.0.1:0",
             "--metrics-listen", metrics, "--log-level", "info", *flags],
            stdout=subprocess.PIPE)
        ports = [self.process.stdout.readline().decode() for _ in range(2)]
        if not all(ports):
            raise RuntimeError("the daemon has ended: " + self.log())
        self.address, self.metrics_address = ("127.0.0.1:" + line.split()[-1] for line in ports)
        wait_until(self._is_ready, self.log)

    def _is_ready(self):
        if self.process.poll() is not None:
            raise RuntimeError("the daemon has ended: " + self.log())
        ready = re.findall(r"^cipherd_program_ready\{.*\} (\d)$", self.metrics_page(), re.MULTILINE)
        return ready and all(value == "1" for value in ready)

    def metrics_page(self):
        with urllib.request.urlopen(f"http://{self.metrics_address}/metrics", timeout=PATIENCE_SECONDS) as reply:
            return reply.read().decode()
