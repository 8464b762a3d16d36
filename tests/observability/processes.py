"""Processes of these tests: daemons, loads, and Debian's Prometheus, on loopback, in directories of their own.

All of them end with the test, whatever becomes of it.
"""

import contextlib
import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.parse
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

    def __init__(self, arguments, log, stdout=None):
        self.log_path = log
        self._log = open(log, "ab")
        self.process = subprocess.Popen(
            arguments, stdout=stdout or self._log, stderr=self._log, preexec_fn=_die_with_parent)

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


class Daemon(Process):
    """cipherd, or a binary with its flags and output, on ports that are free; serving from here on."""

    def __init__(self, directory, *flags, programs=PROGRAMS, binary="CIPHERD_BINARY", metrics="127.0.0.1:0"):
        self.directory = directory
        os.makedirs(directory, exist_ok=True)
        super().__init__(
            [os.environ[binary], "--device", "cpu", "--programs", programs, "--listen", "127.0.0.1:0",
             "--metrics-listen", metrics, "--log-level", "info", *flags],
            os.path.join(directory, "log"), stdout=subprocess.PIPE)
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

    def path(self, name):
        return os.path.join(self.directory, name)

    def ctl(self, command, *arguments, check=True):
        return cipherctl(command, "--server", self.address, *arguments, check=check)

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
            [os.environ["CIPHERCTL_BINARY"], "load", "--server", self.address, "--max-trials", "100000",
             "--stability-percentage", NEVER_STABLE, *arguments],
            self.path("load.log"))
        try:
            yield load
            if load.process.poll() is not None:
                raise AssertionError("the load has ended: " + load.log())
        finally:
            load.stop(signal.SIGINT)


def scale_durations(rules):
    """Rules whose minutes are seconds, and whose longest times are 10 seconds: what they say, sooner."""
    unit_seconds = {"s": 1, "m": 60, "h": 3600, "d": 86400}

    def scale(match):
        seconds = int(match[2]) * unit_seconds[match[3]]
        return f"{match[1]}{min(max(seconds // 60, 1), 10)}s"

    return re.sub(r"(\[|\bfor: )(\d+)([smhd])\b", scale, rules)


class Prometheus(Process):
    """Debian's, with the rules of deploy/prometheus by a clock that runs fast (scale_durations)."""

    SCRAPE_SECONDS = 0.5

    def __init__(self):
        self.directory = tempfile.mkdtemp(prefix="cipherd_prometheus_")
        for name in ("recording.rules.yml", "alerts.rules.yml"):
            with open(os.path.join(DEPLOY, "prometheus", name)) as source:
                self._write(name, scale_durations(source.read()))
        self._targets = {}
        self._write_targets()
        interval = f"{int(self.SCRAPE_SECONDS * 1000)}ms"
        # JSON is YAML.
        self._write("prometheus.yml", json.dumps({
            "global": {"scrape_interval": interval, "scrape_timeout": interval, "evaluation_interval": interval},
            "rule_files": ["*.rules.yml"],
            "scrape_configs": [{
                "job_name": "cipherd",
                "file_sd_configs": [{"files": ["targets.json"], "refresh_interval": "1s"}],
            }],
        }))
        super().__init__(
            ["prometheus", "--config.file", self._path("prometheus.yml"), "--storage.tsdb.path", self._path("data"),
             "--web.listen-address", "127.0.0.1:0"],
            self._path("log"))
        self._address = wait_until(self._find_address, self.log)
        wait_until(self._is_ready, self.log)

    def _path(self, name):
        return os.path.join(self.directory, name)

    def _write(self, name, text):
        with open(self._path(name + ".partial"), "w") as file:
            file.write(text)
        os.rename(self._path(name + ".partial"), self._path(name))

    def _write_targets(self):
        self._write("targets.json", json.dumps(
            [{"targets": [address], "labels": {"instance": name}} for name, address in self._targets.items()]))

    def _find_address(self):
        if self.process.poll() is not None:
            raise RuntimeError("prometheus has ended: " + self.log())
        match = re.search(r'msg="Listening on" address=(\S+)', self.log())
        return match and match[1]

    def _is_ready(self):
        try:
            with urllib.request.urlopen(f"http://{self._address}/-/ready", timeout=5) as reply:
                return reply.status == 200
        except OSError:
            return False

    def stop(self, number=signal.SIGTERM):
        try:
            return super().stop(number)
        finally:
            shutil.rmtree(self.directory)

    def _get(self, what, **parameters):
        url = f"http://{self._address}/api/v1/{what}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=PATIENCE_SECONDS) as reply:
                return json.load(reply)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{what} {parameters}: {error.read().decode()}") from error

    def add(self, name, daemon):
        """From now on `daemon` is scraped, as instance `name`."""
        self._targets[name] = daemon.metrics_address
        self._write_targets()
        wait_until(lambda: self.value(f'up{{instance="{name}"}}') == 1, f"{name} is scraped")

    def remove(self, name):
        del self._targets[name]
        self._write_targets()
        wait_until(lambda: not self.query(f'up{{instance="{name}"}}'), f"{name} is scraped no more")

    def query(self, expression, at=None):
        """Labels and values."""
        at = {} if at is None else {"time": at}
        data = self._get("query", query=expression, **at)
        return [(result["metric"], float(result["value"][1])) for result in data["result"]]

    def value(self, expression, at=None):
        """Of the one sample; None without any."""
        results = self.query(expression, at)
        assert len(results) <= 1, results
        return results[0][1] if results else None

    def values_between(self, expression, begin, end):
        """Of all samples of all series."""
        data = self._get("query_range", query=expression, start=begin, end=end, step=self.SCRAPE_SECONDS)
        return [float(value) for result in data["result"] for _, value in result["values"]]

    def names(self):
        return set(self._get("label/__name__/values"))

    def alerts(self, **labels):
        """Names of those that fire and have these labels."""
        return {
            alert["labels"]["alertname"]
            for alert in self._get("alerts")["alerts"]
            if alert["state"] == "firing" and labels.items() <= alert["labels"].items()
        }

    def rules(self):
        return [rule for group in self._get("rules")["groups"] for rule in group["rules"]]
