"""Debian's Prometheus on loopback, in a directory of its own. It ends with the test."""

import json
import os
import re
import shutil
import signal
import tempfile
import urllib.error
import urllib.parse
import urllib.request

from processes import DEPLOY, PATIENCE_SECONDS, Process, wait_until


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
             "--web.listen-address", "127.0.0.1:0",
             # Of targets that come and go; 5 s without (a flag that --help does not show).
             "--scrape.discovery-reload-interval", "1s"],
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
        """Soon `name` is scraped no more: Prometheus looks at its targets every second."""
        del self._targets[name]
        self._write_targets()

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
