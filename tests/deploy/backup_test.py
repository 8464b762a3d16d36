"""The key directory of a daemon that runs is copied while clients upload; a daemon on the copy has every set whose upload was
over when the copy began. As deploy/RUNBOOK.md says it is done."""

import os
import shutil
import subprocess
import tempfile
import threading
import unittest

from processes import Daemon, cipherctl, wait_until

# Before the copy, and while it is made again and again.
SETS_BEFORE, COPIES = 4, 5


class BackupTest(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="cipherd_backup_")
        self.addCleanup(shutil.rmtree, self.directory)
        with open(self.path("x.csv"), "w") as file:
            file.write(",".join(["0.5"] * 1024))

    def path(self, name):
        return os.path.join(self.directory, name)

    def start(self, name, keys):
        daemon = Daemon(self.path(name), "--key-directory", keys)
        self.addCleanup(daemon.stop)
        return daemon

    def upload(self, daemon, name):
        daemon.ctl("keygen", "--program", "square", "--keys", self.path(name))
        daemon.ctl("put-keys", "--keys", self.path(name))

    def evaluate(self, daemon, name, check=True):
        """The decrypted result, of inputs that a client encrypts once; or the refusal."""
        keys, inputs, outputs = self.path(name), self.path(name + ".in"), self.path(name + ".out")
        if not os.path.exists(inputs):
            cipherctl("encrypt", "--keys", keys, "--input", "x=" + self.path("x.csv"), "--output", inputs)
        run = daemon.ctl("evaluate", "--keys", keys, "--input", inputs, "--output", outputs, check=check)
        return cipherctl("decrypt", "--keys", keys, "--input", outputs).stdout if run.returncode == 0 else run

    def copy(self, name):
        subprocess.run(["cp", "--archive", self.path("keys"), self.path(name)], check=True)

    def test_a_copy_that_is_made_during_uploads_has_what_was_there(self):
        daemon = self.start("original", self.path("keys"))
        there = [f"client{number}" for number in range(SETS_BEFORE)]
        for name in there:
            self.upload(daemon, name)
        expected = {name: self.evaluate(daemon, name) for name in there}

        uploaded, is_over = [], threading.Event()

        def go_on():
            while not is_over.is_set():
                name = f"later{len(uploaded)}"
                self.upload(daemon, name)
                uploaded.append(name)

        uploads = threading.Thread(target=go_on)
        uploads.start()
        try:
            wait_until(lambda: uploaded, "uploads go on")
            for number in range(COPIES):
                self.copy(f"copy{number}")
            during = len(uploaded)
            wait_until(lambda: len(uploaded) > during, "uploads went on meanwhile")
        finally:
            is_over.set()
            uploads.join()

        for number in range(COPIES):
            restored = self.start(f"restored{number}", self.path(f"copy{number}"))
            for name in there:
                # By the keys of the copy: nobody uploads here.
                self.assertEqual(self.evaluate(restored, name), expected[name])
            self.assertEqual(restored.stop(), 0)
        # A set that came after the copy is not known there, and is uploaded again.
        last = self.start("once more", self.path("copy0"))
        self.assertIn("NOT_FOUND", self.evaluate(last, uploaded[-1], check=False).stdout)
        last.ctl("put-keys", "--keys", self.path(uploaded[-1]))
        self.evaluate(last, uploaded[-1])

    def test_a_damaged_copy_is_told_and_costs_an_upload(self):
        daemon = self.start("original", self.path("keys"))
        self.upload(daemon, "client")
        self.assertEqual(daemon.stop(), 0)
        self.copy("copy")
        files = [os.path.join(root, name) for root, _, names in os.walk(self.path("copy")) for name in names]
        largest = max(files, key=os.path.getsize)
        with open(largest, "r+b") as file:
            file.seek(os.path.getsize(largest) // 2)
            file.write(b"damage")
        restored = self.start("restored", self.path("copy"))
        refused = self.evaluate(restored, "client", check=False)
        self.assertIn("NOT_FOUND", refused.stdout)
        restored.ctl("put-keys", "--keys", self.path("client"))
        self.evaluate(restored, "client")


if __name__ == "__main__":
    unittest.main(verbosity=2)
