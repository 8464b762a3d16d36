"""What every deployment tells the daemon: flags that it knows, values that it takes, and a daemon that serves with them."""

import os
import re
import subprocess
import sys
import unittest
import urllib.request

import yaml

sys.path.insert(0, os.path.dirname(__file__))
import daemon_flags as daemon  # noqa: E402
import kustomization  # noqa: E402

START_SECONDS = 240


def kubernetes_arguments(overlay):
    for entry in kustomization.render(daemon.deploy("kubernetes", "overlays", overlay)):
        if entry["kind"] == "StatefulSet":
            return entry["spec"]["template"]["spec"]["containers"][0]["args"]
    raise AssertionError("no StatefulSet")


def compose_service():
    with open(daemon.deploy("compose.yaml")) as file:
        return yaml.safe_load(file)["services"]["cipherd"]


def unit_command():
    with open(daemon.deploy("systemd", "cipherd.service")) as file:
        (line,) = re.findall(r"^ExecStart=(.*)$", file.read(), re.MULTILINE)
    return line.split()


def deployments():
    """By name, the flags that the daemon reads, config file included."""
    config = daemon.image_config()
    return {
        "Kubernetes, cpu": config | daemon.parse_flags(kubernetes_arguments("cpu")),
        "Kubernetes, gpu": config | daemon.parse_flags(kubernetes_arguments("gpu")),
        "Compose": config | daemon.parse_flags(compose_service()["command"]),
        "systemd": daemon.parse_flags(unit_command()[1:]),
    }


class FlagsTest(unittest.TestCase):
    def test_every_flag_is_one_that_the_daemon_knows(self):
        known = daemon.known_flags()
        self.assertIn("--listen", known)
        for name, flags in deployments().items():
            with self.subTest(deployment=name):
                self.assertLessEqual({"--" + flag for flag in flags}, known)
        with open(os.path.join(daemon.SOURCE, "Dockerfile")) as file:
            used = set(re.findall(r'"(--[a-z-]+)"', file.read()))
        self.assertEqual(used, {"--config", "--probe"})
        self.assertLessEqual(used, known)

    def test_every_value_is_one_that_the_daemon_takes(self):
        for name, flags in deployments().items():
            with self.subTest(deployment=name):
                # It looks at all values before it looks for a device, which need not be here, and for programs.
                flags = flags | {"programs": "/no/such/directory", "device": "cpu"}
                result = subprocess.run([daemon.BINARY, *daemon.start_arguments(flags)], capture_output=True, text=True)
                self.assertEqual(result.returncode, 1)
                self.assertIn("/no/such/directory", result.stderr)

    def test_the_config_of_the_image_is_taken_and_asks_for_tls(self):
        command = [daemon.BINARY, "--config", daemon.deploy("image", "cipherd.conf"), "--programs=/no/such/directory"]
        for arguments, answer in (([], "TLS is off"), (["--allow-plaintext-remote"], "/no/such/directory")):
            result = subprocess.run(command + arguments, capture_output=True, text=True)
            self.assertEqual(result.returncode, 1)
            self.assertIn(answer, result.stderr)

    def test_nothing_is_insecure(self):
        for name, flags in deployments().items():
            with self.subTest(deployment=name):
                self.assertNotIn("allow-insecure-contexts", flags)
                # Compose publishes the port on the machine's own loopback, and nowhere else.
                if name != "Compose":
                    self.assertNotIn("allow-plaintext-remote", flags)
        for port in compose_service()["ports"]:
            self.assertTrue(port.startswith("127.0.0.1:"), port)


class StartTest(unittest.TestCase):
    """The daemon of the cpu overlay, but for where its files and ports are."""

    def setUp(self):
        self.directory = self.enterContext(daemon.temporary_directory())
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                        "-days", "1", "-subj", "/CN=cipherd", "-addext", "subjectAltName=DNS:cipherd",
                        "-keyout", self.path("tls.key"), "-out", self.path("tls.crt")], check=True, capture_output=True)
        os.mkdir(self.path("keys"))

    def path(self, name):
        return os.path.join(self.directory, name)

    def start(self):
        moved = {
            "/programs": daemon.deploy("programs"),
            "/keys/sets": self.path("keys/sets"),
            "/tls/tls.crt": self.path("tls.crt"),
            "/tls/tls.key": self.path("tls.key"),
        }
        flags = deployments()["Kubernetes, cpu"]
        for name, value in flags.items():
            # Every port on this machine only, and any that is free.
            flags[name] = moved.get(value, re.sub(r"^0\.0\.0\.0:\d+$", "127.0.0.1:0", value))
        log = self.enterContext(open(self.path("log"), "w"))
        process = subprocess.Popen([daemon.BINARY, *daemon.start_arguments(flags)],
                                   stdout=subprocess.PIPE, stderr=log, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        lines = [process.stdout.readline() for _ in range(3)]
        self.ports = {line.split(" ")[0]: int(line.split()[-1]) for line in lines}
        self.assertEqual(set(self.ports), {"listening", "metrics", "health"})
        return process

    def probe(self, *arguments):
        return subprocess.run([daemon.BINARY, "--probe", *arguments], capture_output=True, text=True)

    def await_serving(self, process):
        for _ in range(10 * START_SECONDS):
            if self.probe(f"127.0.0.1:{self.ports['health']}").returncode == 0:
                return
            try:
                process.wait(0.1)
            except subprocess.TimeoutExpired:
                continue
            break
        with open(self.path("log")) as file:
            self.fail("the daemon does not serve: " + file.read())

    def test_it_serves_with_the_flags_of_the_overlay(self):
        process = self.start()
        self.await_serving(process)
        result = self.probe(f"127.0.0.1:{self.ports['listening']}", "--probe-ca", self.path("tls.crt"),
                            "--probe-name", "cipherd", "--probe-service", "fashion_mlp")
        self.assertEqual((result.returncode, result.stdout),
                         (0, f"127.0.0.1:{self.ports['listening']}: SERVING\n"), result.stderr)
        self.assertEqual(os.stat(self.path("keys/sets")).st_mode & 0o777, 0o700)

        # What the autoscaler goes by is there, once a program.
        with urllib.request.urlopen(f"http://127.0.0.1:{self.ports['metrics']}/metrics") as page:
            text = page.read().decode()
        (values,) = kustomization.read_objects(
            daemon.deploy("kubernetes", "components", "autoscaling", "prometheus-adapter.yaml"))
        (rule,) = values["rules"]["custom"]
        series = rule["seriesQuery"].partition("{")[0]
        self.assertRegex(text, rf'(?m)^{series}\{{program="fashion_mlp"\}} 0$')

        # A lame duck says so, on either port, until it is told to go on.
        process.terminate()
        while self.probe(f"127.0.0.1:{self.ports['health']}").returncode == 0:
            pass
        result = self.probe(f"127.0.0.1:{self.ports['listening']}", "--probe-ca", self.path("tls.crt"),
                            "--probe-name", "cipherd")
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertEqual(result.stderr,
                         f"cipherd: FAILED_PRECONDITION: 127.0.0.1:{self.ports['listening']}: NOT_SERVING\n")
        process.terminate()
        self.assertEqual(process.wait(), 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
