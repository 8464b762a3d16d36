"""The formulas of deploy/SIZING.md against what a daemon's own gauges say.

Terms are taken from the program's text: N, primes, digits, rotation steps; not from what the daemon or the client computes.
"""

import contextlib
import os
import re
import tempfile
import unittest

from processes import DEPLOY, PROGRAMS, Daemon, cipherctl

# A captured instance has a pinned table of key addresses, and the pool's blocks are multiples of this.
BLOCK_BYTES = 256


class Program:
    """The numbers of SIZING.md, of a program.textproto whose inputs are at depth 0 and outputs at `output_limbs`."""

    def __init__(self, path, output_limbs):
        with open(path) as file:
            text = re.sub(r"#.*", "", file.read())

        def primes(name):
            return len(re.search(rf"{name}: \[(.*?)\]", text, re.DOTALL)[1].split(","))

        self.n = 1 << int(re.search(r"log_n: (\d+)", text)[1])
        self.q, self.p = primes("q_primes"), primes("p_primes")
        self.digits = len(re.findall(r"\bdigits \{", text))
        self.inputs = len(re.findall(r"^inputs \{", text, re.MULTILINE))
        self.outputs = len(re.findall(r"^outputs \{", text, re.MULTILINE))
        self.output_limbs = output_limbs

    def key_bytes(self):
        return 16 * self.n * self.digits * (self.q + self.p)

    def place_bytes(self):
        return 16 * self.n * (self.inputs * self.q + self.outputs * self.output_limbs)


def gauge(daemon, row):
    return float(re.search(rf"^{re.escape(row)} (\S+)$", daemon.metrics_page(), re.MULTILINE)[1])


MEBIBYTE = 1 << 20
GIBIBYTE = 1 << 30


class SizingTest(unittest.TestCase):
    PROGRAM = Program(os.path.join(PROGRAMS, "square", "program.textproto"), output_limbs=1)

    @contextlib.contextmanager
    def daemon(self, *flags):
        with tempfile.TemporaryDirectory(prefix="cipherd_sizing_") as directory:
            daemon = Daemon(directory, *flags)
            try:
                yield daemon
            finally:
                daemon.stop()

    def test_key_sets_and_places_take_what_the_formulas_say(self):
        queue, workers, instances = 20, 2, 3
        with self.daemon("--queue-capacity", str(queue), "--workers", str(workers), "--instances", str(instances)) as daemon:
            places = queue + workers * instances
            self.assertEqual(sum(gauge(daemon, f'cipherd_pinned_trees{{program="square",state="{state}"}}')
                                 for state in ("leased", "idle")), places)
            pinned = gauge(daemon, 'cipherd_memory_pool_allocated_bytes{pool="pinned",device="cpu:0"}')
            expected = places * self.PROGRAM.place_bytes()
            self.assertGreaterEqual(pinned, expected)
            self.assertLessEqual(pinned, expected + workers * instances * BLOCK_BYTES)

            sets = 3
            for number in range(sets):
                keys = daemon.path(f"keys{number}")
                daemon.ctl("keygen", "--program", "square", "--keys", keys)
                daemon.ctl("put-keys", "--keys", keys)
            # One key each, of relinearization: nothing rotates.
            expected = sets * self.PROGRAM.key_bytes()
            self.assertEqual(gauge(daemon, 'cipherd_key_bytes{tier="host"}'), expected)
            self.assertEqual(gauge(daemon, 'cipherd_memory_pool_allocated_bytes{pool="pinned",device="cpu:0"}'), pinned + expected)

            with open(daemon.path("x.csv"), "w") as file:
                file.write(",".join(["0.5"] * 1024))
            cipherctl("encrypt", "--keys", daemon.path("keys0"), "--input", "x=" + daemon.path("x.csv"),
                      "--output", daemon.path("in.ct"))
            device = gauge(daemon, 'cipherd_memory_pool_allocated_bytes{pool="device",device="cpu:0"}')
            daemon.ctl("evaluate", "--keys", daemon.path("keys0"), "--input", daemon.path("in.ct"),
                       "--output", daemon.path("out.ct"))
            self.assertEqual(gauge(daemon, 'cipherd_key_bytes{tier="device",device="cpu:0"}'), self.PROGRAM.key_bytes())
            # A request's own tables are of a block each.
            grown = gauge(daemon, 'cipherd_memory_pool_allocated_bytes{pool="device",device="cpu:0"}') - device
            self.assertAlmostEqual(grown, self.PROGRAM.key_bytes(), delta=4 * BLOCK_BYTES)

    def test_device_memory_grows_by_as_much_with_each_instance_of_a_worker(self):
        def device_bytes(workers, instances):
            with self.daemon("--workers", str(workers), "--instances", str(instances)) as daemon:
                return gauge(daemon, 'cipherd_memory_pool_allocated_bytes{pool="device",device="cpu:0"}')

        one, two = device_bytes(1, 1), device_bytes(1, 2)
        # What SIZING.md has an operator measure: the rest, which all share, follows.
        instance, shared = two - one, 2 * one - two
        self.assertGreater(instance, 0)
        self.assertGreater(shared, 0)
        for workers, instances in ((1, 4), (2, 3)):
            predicted = shared + workers * instances * instance
            self.assertAlmostEqual(device_bytes(workers, instances), predicted, delta=0.02 * predicted,
                                   msg=f"{workers} workers, {instances} instances")

    def test_the_page_says_the_same(self):
        with open(os.path.join(DEPLOY, "SIZING.md")) as file:
            page = file.read()
        for formula in ("16 · N · D · (|Q| + |P|)", "16 · N · (inputs · |Q| + outputs · L)",
                        "queue-capacity + devices · workers · instances · largest batch"):
            self.assertIn(formula, page)

    def test_the_table_of_capacity_is_by_the_formulas(self):
        with open(os.path.join(DEPLOY, "SIZING.md")) as file:
            rows = re.findall(r"^\| N (\d+), \\\|Q\\\| (\d+), \\\|P\\\| (\d+), D (\d+), L (\d+).*?\) \| (\d+) \| ([\d.]+) MiB "
                              r"\| (\d+) \| ([\d.]+) MiB \|", file.read(), re.MULTILINE)
        self.assertEqual(len(rows), 2)
        for row in rows:
            n, q, p, digits, limbs, keys = map(int, row[:6])
            set_bytes = keys * 16 * n * digits * (q + p)
            self.assertEqual(row[6], f"{set_bytes / MEBIBYTE:.1f}")
            self.assertEqual(int(row[7]), 100 * GIBIBYTE // set_bytes)
            self.assertEqual(row[8], f"{16 * n * (q + limbs) / MEBIBYTE:.2f}")
        demo = Program(os.path.join(DEPLOY, "programs", "fashion_mlp", "program.textproto"), output_limbs=1)
        self.assertEqual(tuple(map(int, rows[0][:5])), (demo.n, demo.q, demo.p, demo.digits, demo.output_limbs))


if __name__ == "__main__":
    unittest.main(verbosity=2)
