"""The Compose files: they fit the Compose specification, and agree with the image and the daemon."""

import os
import sys
import unittest

import compose_spec
import yaml

sys.path.insert(0, os.path.dirname(__file__))
import daemon_flags as daemon  # noqa: E402

MEMORY_OF_THE_PROCESS = 1 << 30


def read(name):
    with open(daemon.deploy(name)) as file:
        return file.read()


class ComposeTest(unittest.TestCase):
    def setUp(self):
        self.service = yaml.safe_load(read("compose.yaml"))["services"]["cipherd"]
        self.flags = daemon.parse_flags(self.service["command"])

    def test_files_fit_the_specification(self):
        for name in ("compose.yaml", "compose.gpu.yaml"):
            with self.subTest(file=name):
                compose_spec.PyCompose.from_yaml(read(name))

    def test_a_field_that_does_not_exist_does_not_fit(self):
        with self.assertRaisesRegex(ValueError, "readonly"):
            compose_spec.PyCompose.from_yaml(read("compose.yaml").replace("read_only:", "readonly:"))

    def test_images_have_the_version_of_the_project(self):
        for name in ("compose.yaml", "compose.gpu.yaml"):
            image = yaml.safe_load(read(name))["services"]["cipherd"]["image"]
            self.assertEqual(image.partition(":")[2], daemon.project_version())

    def test_the_container_may_nothing(self):
        self.assertIs(self.service["read_only"], True)
        self.assertEqual(self.service["cap_drop"], ["ALL"])
        self.assertEqual(self.service["security_opt"], ["no-new-privileges:true"])
        with open(os.path.join(daemon.SOURCE, "Dockerfile")) as file:
            users = {line.split()[1] for line in file if line.startswith("USER ")}
        self.assertEqual(users, {self.service["user"]})

    def test_the_daemon_leaves_before_it_is_killed(self):
        needed = float(self.flags["lame-duck"]) + float(self.flags["drain-timeout"]) + daemon.SECONDS_AFTER_DRAIN
        self.assertGreaterEqual(int(self.service["stop_grace_period"].removesuffix("s")), needed + 10)

    def test_budgets_fit_the_memory_of_the_container(self):
        budget = daemon.host_budget_bytes(self.flags, device_is_host=True)
        self.assertLessEqual(budget + MEMORY_OF_THE_PROCESS, daemon.parse_bytes(self.service["mem_limit"]))

    def test_volumes_are_where_the_daemon_looks(self):
        config = daemon.image_config()
        places = [volume.split(":") for volume in self.service["volumes"]]
        self.assertIn(["./programs", config["programs"], "ro"], places)
        self.assertIn(["keys", os.path.dirname(config["key-directory"])], places)


if __name__ == "__main__":
    unittest.main(verbosity=2)
