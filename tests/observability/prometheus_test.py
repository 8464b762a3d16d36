"""What a real Prometheus says of daemons: the load generator's own figures, the board's panels, and each alert from its cause.

Minutes of the rules are seconds here (prometheus.scale_durations). Alerts whose cause cannot be had on the CPU device, or only by
a fault in the daemon, are seen in the rules' unit tests alone: WITHOUT_CAUSE.
"""

import contextlib
import glob
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

import board
from processes import DEPLOY, PROGRAMS, Daemon, cipherctl, wait_until
from prometheus import Prometheus

WITHOUT_CAUSE = {
    # The engine has no such path: the counter is there so that one that creeps in shows.
    "CipherdEagerFallbacks",
    # Slabs of a pool are larger than what is left of a budget this small.
    "CipherdMemoryPoolFull",
}

# Panels, or names in their legends, that show nothing but 0 where all is well.
ZERO_BY_NATURE = {
    "Errors", "Programs that are not ready", "Workers out", "Failures by reason", "Refused for their tenant's quota",
    "Deadlines missed", "Key sets that made room", "Waits for room on the device, files that cannot be read",
    "Calls to the system's allocator", "Faults and fallbacks",
}

# Bounds of the daemon's histograms.
BUCKETS = [step * 10**decade for decade in range(-5, 2) for step in (1, 2, 5)] + [100]

# A relinearization key of programs/square: two digits of two polynomials over three primes, 4096 words each.
KEY_SET_BYTES = 2 * 2 * 3 * 4096 * 8


def bucket(seconds):
    return sum(seconds > bound for bound in BUCKETS)


class PrometheusTest(unittest.TestCase):
    seen = set()

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.mkdtemp(prefix="cipherd_observability_")
        cls.addClassCleanup(shutil.rmtree, cls.directory)
        cls.prometheus = Prometheus()
        cls.addClassCleanup(cls.prometheus.stop)

    def path(self, *names):
        return os.path.join(self.directory, *names)

    @contextlib.contextmanager
    def daemon(self, name, *flags, **arguments):
        """One that is scraped as instance `name`."""
        daemon = Daemon(self.path(name), *flags, **arguments)
        try:
            self.prometheus.add(name, daemon)
            yield daemon
            self.prometheus.remove(name)
        finally:
            daemon.stop()

    @contextlib.contextmanager
    def causing(self, *alerts):
        """None of them fires before; each does, at some time, after what is done inside."""
        wait_until(lambda: not self.prometheus.alerts() & set(alerts),
                   lambda: f"of {alerts} these still fire: {self.prometheus.alerts()}")
        yield
        missing = set(alerts)

        def have_fired():
            missing.difference_update(self.prometheus.alerts())
            return not missing

        wait_until(have_fired, lambda: f"{missing} do not fire")
        self.seen.update(alerts)

    # In the order of their names: the last one looks at what the others have seen.

    def test_1_no_target_no_daemon_and_one_that_restarts(self):
        wait_until(lambda: "CipherdAbsent" in self.prometheus.alerts(), "CipherdAbsent does not fire")
        self.seen.add("CipherdAbsent")
        daemon = Daemon(self.path("restarting"))
        self.prometheus.add("restarting", daemon)
        wait_until(lambda: "CipherdAbsent" not in self.prometheus.alerts(), "CipherdAbsent still fires")
        self.assertEqual(self.prometheus.alerts(instance="restarting"), set())

        def restart():
            nonlocal daemon
            daemon.stop()
            daemon = Daemon(self.path("restarting"), metrics=daemon.metrics_address)
            start = float(re.search(r"^process_start_time_seconds (\S+)", daemon.metrics_page(), re.MULTILINE)[1])
            wait_until(lambda: self.prometheus.value('process_start_time_seconds{instance="restarting"}') == start,
                       "the new start is seen")
            return "CipherdRestarting" in self.prometheus.alerts()

        with self.causing("CipherdRestarting"):
            # How many fit into the window depends on the machine.
            wait_until(restart, "CipherdRestarting does not fire")
        with self.causing("CipherdDown"):
            daemon.stop(signal.SIGKILL)
        self.prometheus.remove("restarting")

    def make_certificate(self, days):
        """Signed by itself: files of certificate and key."""
        certificate, key = self.path(f"{days}.pem"), self.path(f"{days}.key")
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", str(days),
             "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate],
            check=True, capture_output=True)
        return certificate, key

    def test_2_queries_return_what_the_load_generator_saw(self):
        certificate, key = self.make_certificate(365)
        prometheus = self.prometheus
        with self.daemon("main", "--tls-cert", certificate, "--tls-key", key) as daemon:
            wait_until(lambda: prometheus.value('cipherd_requests_accepted_total{instance="main"}') == 0, "all is at 0")
            begin = time.time()
            tenants, variants = 2, 2
            report = daemon.load(
                "--program", "square", "--tls", "--ca", certificate, "--server-name", "localhost", "--verify",
                "--tenants", str(tenants), "--variants", str(variants), "--concurrency-range", "16",
                "--measurement-interval", "5000", "--max-trials", "3")
            load_end = time.time()
            wait_until(
                lambda: prometheus.value('timestamp(cipherd_requests_accepted_total{instance="main"})') > load_end,
                "what came last is scraped")
            end = time.time()

            level, = report["levels"]
            # References of the verification are not of the load.
            expected = level["requests"]["ended_in_all"] + tenants * variants
            self.assertGreater(expected, 100)
            self.assertEqual(level["requests"]["wrong_in_all"], 0)
            self.assertEqual(level["requests"]["failed"], 0)
            succeeded = '{instance="main", program="square", outcome="succeeded"}'
            counted = prometheus.value(f"cipherd_requests_finished_total{succeeded}", at=end)
            print(f"requests: {expected} sent, {counted:.0f} counted")
            self.assertAlmostEqual(counted, expected, delta=0.01 * expected)
            # Over a window, Prometheus guesses what lies between its ends and the scrapes next to them.
            seconds = end - begin
            window = f"cipherd_requests_finished_total{succeeded}[{seconds:.0f}s]"
            increase = prometheus.value(f"increase({window})", at=end)
            guessed = 2.2 / (prometheus.value(f"count_over_time({window})", at=end) - 1)
            self.assertAlmostEqual(increase, expected, delta=(0.01 + guessed) * expected)

            p99 = level["latency_seconds"]["p99"]
            for histogram in ('cipherd_request_duration_seconds_bucket{program="square", instance="main"}',
                              'cipherd_rpc_duration_seconds_bucket{method="Evaluate", code="OK", instance="main"}'):
                seen = prometheus.value(
                    f"histogram_quantile(0.99, sum by (le) (increase({histogram}[{seconds:.0f}s])))", at=end)
                print(f"p99: {1e3 * p99:.2f} ms at the client, {1e3 * seen:.2f} ms by {histogram}")
                self.assertLessEqual(abs(bucket(seen) - bucket(p99)), 1)

            self.check_board(begin, end)
            self.check_page(daemon)
            self.check_names()
            self.assertEqual(prometheus.alerts(instance="main"), set())
            self.assertEqual(prometheus.alerts(program="square"), set())

    def check_board(self, begin, end):
        for title, query in board.queries():
            expression = board.fill(query, __rate_interval="5s", job="cipherd", instance="main", program=".*")
            values = self.prometheus.values_between(expression, begin, end)
            numbers = [value for value in values if value == value]
            with self.subTest(title, expression=expression):
                self.assertTrue(numbers, "no data")
                if title not in ZERO_BY_NATURE:
                    self.assertTrue(any(numbers), "nothing but 0")
        self.assertLessEqual(ZERO_BY_NATURE, {title for title, _ in board.queries()})

    def check_page(self, daemon):
        run = subprocess.run(
            ["promtool", "check", "metrics"], input=daemon.metrics_page(), capture_output=True, text=True, check=False)
        self.assertEqual((run.returncode, run.stdout + run.stderr), (0, ""))

    def check_names(self):
        """Rules ask for what there is."""
        expressions = " ".join(rule["query"] for rule in self.prometheus.rules())
        asked = set(re.findall(r"(?<![:\w])(?:cipherd|process)_\w+(?!:)\b", expressions))
        self.assertGreater(len(asked), 20)
        self.assertEqual(asked - self.prometheus.names(), set())
        records = {rule["name"] for rule in self.prometheus.rules() if rule["type"] == "recording"}
        self.assertEqual(records - self.prometheus.names(), set())

    def test_3_a_certificate_that_ends_soon(self):
        certificate, key = self.make_certificate(1)
        with contextlib.ExitStack() as stack:
            with self.causing("CipherdCertificateExpiresSoon", "CipherdCertificateExpiresNow"):
                stack.enter_context(self.daemon("certificate", "--tls-cert", certificate, "--tls-key", key))

    def test_4_a_program_that_cannot_be_loaded_again(self):
        programs = self.path("programs")
        shutil.copytree(PROGRAMS, programs)
        broken = os.path.join(programs, "broken")
        with self.daemon("reload", programs=programs) as daemon:
            with self.causing("CipherdReloadFailed"):
                os.mkdir(broken)
                with open(os.path.join(broken, "program.textproto"), "w") as file:
                    file.write("no program")
                daemon.send_signal(signal.SIGHUP)
            shutil.rmtree(broken)
            daemon.send_signal(signal.SIGHUP)
            wait_until(lambda: "CipherdReloadFailed" not in self.prometheus.alerts(), "CipherdReloadFailed still fires")

    def test_4_keys_of_tokens_that_are_damaged(self):
        key, public = self.path("token.key"), self.path("token.pem")
        subprocess.run(["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", key],
                       check=True, capture_output=True)
        subprocess.run(["openssl", "pkey", "-in", key, "-pubout", "-out", public], check=True, capture_output=True)
        with self.daemon("tokens", "--token-keys", public, "--token-issuer", "idp", "--token-audience", "cipherd"):
            with self.causing("CipherdTokenKeysNotTaken"):
                with open(public, "w") as file:
                    file.write("no key")

    def fashion_mlp(self, settings):
        """A directory of it alone, served with these settings."""
        programs = tempfile.mkdtemp(dir=self.directory)
        shutil.copytree(os.path.join(DEPLOY, "programs"), programs, dirs_exist_ok=True)
        with open(os.path.join(programs, "fashion_mlp", "serving.textproto"), "w") as file:
            file.write(settings)
        return programs

    def test_5_more_requests_than_there_is_room_for(self):
        load = ["--program", "fashion_mlp", "--concurrency-range", "96"]
        # Times that no machine keeps: half of the default one is the latency's objective.
        programs = self.fashion_mlp("instances: 1 queue_capacity: 20 default_timeout_seconds: 0.001")
        with self.daemon("overload", programs=programs) as daemon:
            with contextlib.ExitStack() as stack:
                with self.causing("CipherdOverloaded", "CipherdQueueFull", "CipherdPinnedTreesExhausted",
                                  "CipherdLatencyHigh"):
                    stack.enter_context(daemon.under_load(*load))
        programs = self.fashion_mlp("default_timeout_seconds: 0.001 longest_timeout_seconds: 0.001")
        with self.daemon("deadlines", programs=programs) as daemon:
            with contextlib.ExitStack() as stack:
                with self.causing("CipherdDeadlinesMissed"):
                    stack.enter_context(daemon.under_load(*load))

    def test_5_more_connections_than_an_address_may_have(self):
        with self.daemon("connections", "--max-connections-per-peer", "2") as daemon:
            host, port = daemon.address.split(":")
            with self.causing("CipherdConnectionsRefused"):
                with contextlib.ExitStack() as stack:
                    # Two that stay, and others who knock for twice as long as the rule looks back.
                    for _ in range(2):
                        stack.enter_context(socket.create_connection((host, port)))
                    for _ in range(100):
                        socket.create_connection((host, port)).close()
                        time.sleep(0.1)

    def put_keys(self, daemon, name):
        keys = daemon.path(name)
        daemon.ctl("keygen", "--program", "square", "--keys", keys)
        daemon.ctl("put-keys", "--keys", keys)
        return keys

    def test_6_more_key_sets_than_there_is_room_for(self):
        with self.daemon("keys", "--key-host-memory", str(int(2.1 * KEY_SET_BYTES))) as daemon:
            with self.causing("CipherdKeyStoreNearBudget"):
                for name in ("first", "second"):
                    self.put_keys(daemon, name)
                wait_until(lambda: self.prometheus.value('cipherd_key_bytes{instance="keys", tier="host"}')
                           == 2 * KEY_SET_BYTES, "two sets are here")
            with self.causing("CipherdKeySetsLost"):
                self.put_keys(daemon, "third")
        with self.daemon("thrash", "--key-device-memory", str(int(1.2 * KEY_SET_BYTES))) as daemon:
            with contextlib.ExitStack() as stack:
                with self.causing("CipherdKeysThrash"):
                    stack.enter_context(
                        daemon.under_load("--program", "square", "--tenants", "4", "--concurrency-range", "4"))

    def test_7_a_file_of_keys_that_is_damaged(self):
        directory = self.path("key_files")
        with open(self.path("x.csv"), "w") as file:
            for _ in range(2):
                file.write(",".join(["0.5"] * 1024) + "\n")
        with self.daemon("before", "--key-directory", directory) as daemon:
            keys = self.put_keys(daemon, "keys")
        with self.daemon("damaged", "--key-directory", directory) as daemon:
            cipherctl("encrypt", "--keys", keys, "--input", "x=" + self.path("x.csv"), "--output", self.path("in.ct"))
            with self.causing("CipherdKeyFilesUnreadable"):
                files = [path for path in glob.glob(directory + "/**", recursive=True)
                         if os.path.isfile(path) and os.path.getsize(path) >= KEY_SET_BYTES]
                self.assertEqual(len(files), 1)
                with open(files[0], "r+b") as file:
                    file.seek(KEY_SET_BYTES // 2)
                    file.write(b"damaged")
                run = daemon.ctl("evaluate", "--keys", keys, "--input", self.path("in.ct"), "--output", self.path("out.ct"),
                                 check=False)
                self.assertNotEqual(run.returncode, 0)

    def test_8_a_device_that_fails(self):
        with self.daemon("faults", binary="FAULTING_DAEMON_BINARY") as daemon:
            with daemon.under_load("--program", "square", "--concurrency-range", "2"):
                wait_until(lambda: (self.prometheus.value('cipherd_requests_finished_total'
                                                          '{instance="faults", outcome="succeeded"}') or 0) > 0, "requests succeed")
                self.assertEqual(self.prometheus.alerts(instance="faults"), set())
                with self.causing("CipherdWorkerFaults"):
                    daemon.send_signal(signal.SIGUSR1)
                wait_until(lambda: self.prometheus.value('cipherd_worker_healthy{instance="faults"}') == 1,
                           "the worker is rebuilt")
                with self.causing("CipherdDeviceFailed", "CipherdWorkerOut", "CipherdProgramNotReady", "CipherdErrorsFast",
                                  "CipherdErrorsSlow"):
                    daemon.send_signal(signal.SIGUSR2)

    def test_9_every_alert_was_seen_but_those_without_a_cause_here(self):
        alerts = {rule["name"] for rule in self.prometheus.rules() if rule["type"] == "alerting"}
        self.assertEqual(alerts - self.seen, WITHOUT_CAUSE)


if __name__ == "__main__":
    unittest.main(verbosity=2)
