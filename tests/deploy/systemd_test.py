"""The systemd unit, as systemd reads it."""

import os
import re
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(__file__))
import daemon_flags as daemon  # noqa: E402

# systemd's own measure, 0 to 10. What is left is the network, which the daemon is there for.
MAX_EXPOSURE = 1.5


class SystemdTest(unittest.TestCase):
    def setUp(self):
        self.directory = self.enterContext(daemon.temporary_directory())
        self.unit = os.path.join(self.directory, "cipherd.service")
        with open(daemon.deploy("systemd", "cipherd.service")) as file:
            self.text = file.read()
        # The program is where it was built.
        with open(self.unit, "w") as file:
            file.write(self.text.replace("/usr/bin/cipherd", daemon.BINARY))

    def analyze(self, *arguments):
        return subprocess.run(["systemd-analyze", "--no-pager", *arguments, self.unit], capture_output=True, text=True)

    def expect_good(self):
        result = self.analyze("verify", "--man=no", "--recursive-errors=one")
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))

    def test_the_unit_is_understood_to_the_last_line(self):
        self.expect_good()

    def test_the_unit_is_understood_with_a_gpu(self):
        shutil.copytree(daemon.deploy("systemd", "cipherd.service.d"), self.unit + ".d")
        self.expect_good()

    def test_a_setting_that_does_not_exist_is_seen(self):
        with open(self.unit, "a") as file:
            file.write("\n[Service]\nProtectEverything=yes\n")
        self.assertIn("ProtectEverything", self.analyze("verify", "--man=no").stderr)

    def test_the_service_is_exposed_as_little_as_a_server_can_be(self):
        result = self.analyze("security", "--offline=yes", f"--threshold={int(10 * MAX_EXPOSURE)}")
        self.assertEqual(result.returncode, 0, result.stdout)
        (exposure,) = re.findall(r"exposure level for cipherd.service: ([0-9.]+)", result.stdout)
        self.assertLessEqual(float(exposure), MAX_EXPOSURE)

    def test_the_daemon_leaves_before_it_is_killed(self):
        (seconds,) = re.findall(r"^TimeoutStopSec=(\d+)$", self.text, re.MULTILINE)
        (command,) = re.findall(r"^ExecStart=(.*)$", self.text, re.MULTILINE)
        flags = daemon.parse_flags(command.split()[1:])
        needed = float(flags["lame-duck"]) + float(flags["drain-timeout"]) + daemon.SECONDS_AFTER_DRAIN
        self.assertGreaterEqual(int(seconds), needed + 10)


if __name__ == "__main__":
    unittest.main(verbosity=2)
