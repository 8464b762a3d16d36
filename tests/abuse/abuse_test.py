"""A daemon serves a good tenant while others abuse HTTP/2, and is afterwards as it was before.

    abuse_test.py                        what holds on any machine: in CTest
    abuse_test.py --measure [NAME]...    longer, prints a table of p99 with each abuse over without it; --json FILE

Daemon, good tenant and abuser share this machine, so that what the abuser's own work costs is in the figures, too: it runs at
nice 10, and its rates are bounded (abuses.py). It comes from another address of loopback than the good tenant.
"""

import argparse
import contextlib
import dataclasses
import json
import math
import multiprocessing
import os
import platform
import queue
import re
import subprocess
import sys
import tempfile
import time

import abuses
import good_tenant
from messages import Requests
from peer import Target
from processes import Daemon, wait_until

# Where the daemon lets go in seconds, not half a minute, so that the test need not wait.
QUICK = ("--stall-timeout", "2", "--upload-resume-timeout", "1", "--handshake-timeout", "2", "--free-memory-interval", "1")
# Of each tenant, where there are several. Half of the program's places.
TENANT_REQUESTS = 16
# Open files that come and go by themselves: scrapes, and the good tenant's new connections.
SPARE_FILES = 6


@dataclasses.dataclass
class Bars:
    seconds: float
    rounds: int
    # Of p99 with the abuse over without; none where others may be at work on the machine.
    p99_ratio: float = math.inf
    # Of resident memory at its most over before.
    grown_bytes: int = 256 << 20
    # Of resident memory that is left once the abuser is gone, and free heap has had time to go back to the system.
    left_bytes: int = 64 << 20
    # Of the daemon's threads at their most over before: gRPC has some of its own, and 16 for reflection.
    grown_threads: int = 48


class Watched:
    """What a daemon has."""

    def __init__(self, daemon):
        self._daemon = daemon

    def metric(self, name):
        rows = re.findall(rf"^{name}(?:\{{.*\}})? (\S+)$", self._daemon.metrics_page(), re.MULTILINE)
        if not rows:
            raise AssertionError(f"no metric {name}")
        return sum(map(float, rows))

    def held(self):
        """All that an abuser may hold."""
        page = self._daemon.metrics_page()

        def total(pattern):
            return sum(map(float, re.findall(rf"^{pattern} (\S+)$", page, re.MULTILINE)))

        return {
            "requests": total(r"cipherd_requests_in_flight\{.*\}"),
            "pinned trees": total(r'cipherd_pinned_trees\{.*state="leased".*\}'),
            "bytes of keys": total(r'cipherd_key_bytes\{tier="host"\}'),
            "calls": total(r"cipherd_calls_in_flight\{.*\}"),
            "connections": total(r"cipherd_connections"),
            "files": total(r"process_open_fds"),
        }

    def threads(self):
        return self._status("Threads")

    def resident_bytes(self):
        return self._status("VmRSS") << 10

    def peak_bytes(self):
        return self._status("VmHWM") << 10

    def reset_peak(self):
        with open(f"/proc/{self._daemon.process.pid}/clear_refs", "w") as file:
            file.write("5")

    def _status(self, name):
        with open(f"/proc/{self._daemon.process.pid}/status") as file:
            return int(re.search(rf"^{name}:\s+(\d+)", file.read(), re.MULTILINE)[1])

    def cpu_seconds(self):
        return self.metric("process_cpu_seconds_total")


class GoodTenant:
    """In a process of its own, while this is entered."""

    def __init__(self, context, target, requests, rate):
        self._outcomes = context.Queue()
        self._stop = context.Event()
        self._process = context.Process(
            target=good_tenant.run, args=(target, requests, rate, self._outcomes, self._stop), daemon=True)
        self._all = []

    def __enter__(self):
        self._process.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        # It ends once somebody has taken what it has put.
        end = time.monotonic() + 2 * good_tenant.PATIENCE_SECONDS
        while self._process.is_alive() and time.monotonic() < end:
            self.outcomes()
            self._process.join(0.1)
        if self._process.is_alive():
            self._process.kill()

    def outcomes(self):
        """So far."""
        with contextlib.suppress(queue.Empty):
            while True:
                self._all.append(self._outcomes.get_nowait())
        return self._all

    def of(self, windows):
        """Of requests that were due within them. Waits until all have ended."""
        last = max(end for _, end in windows)

        def have_ended():
            self.outcomes()
            # They are due one after the other; the slowest is known by its patience.
            return time.monotonic() > last + 0.5 and any(outcome.due > last for outcome in self._all) or None

        wait_until(have_ended, "requests of the good tenant go on")
        return [outcome for outcome in self._all if any(start <= outcome.due < end for start, end in windows)]


class Abuser:
    """In a process of its own, while this is entered."""

    def __init__(self, context, abuse, target, requests):
        self._stop = context.Event()
        self.counts = context.Array("q", 3)
        self.process = context.Process(
            target=abuses.run, args=(abuse.name, target, requests, self._stop, self.counts), daemon=True)
        self.cpu_seconds = 0.0

    def __enter__(self):
        self.process.start()
        self._start = time.monotonic()
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            with open(f"/proc/{self.process.pid}/stat") as file:
                fields = file.read().rsplit(")", 1)[1].split()
            self.cpu_seconds = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        self.seconds = time.monotonic() - self._start
        self._stop.set()
        self.process.join(20)
        if self.process.is_alive():
            self.process.kill()
            raise AssertionError("the abuser does not end")
        if self.process.exitcode != 0:
            raise AssertionError(f"the abuser ended with {self.process.exitcode}")


def percentile(seconds, share):
    ordered = sorted(seconds)
    return ordered[min(len(ordered) - 1, math.ceil(share * len(ordered)) - 1)]


class AbuseRun:
    """One daemon, one good tenant, one abuse after the other."""

    def __init__(self, context, daemon, requests, abuser_target, bars):
        self._context = context
        self._daemon = daemon
        self._watched = Watched(daemon)
        self._requests = requests
        self._abuser_target = abuser_target
        self._bars = bars

    def _await_freed(self, before, what, names):
        def is_freed():
            held = self._watched.held()
            return all(held[name] <= before[name] + (SPARE_FILES if name in ("files", "connections") else 0)
                       for name in names)

        start = time.monotonic()
        wait_until(is_freed, lambda: f"{what}: before {before}, now {self._watched.held()}", seconds=30)
        return time.monotonic() - start

    def run(self, abuse, tenant):
        """The row of the table. AssertionError where a bar does not hold."""
        watched, bars = self._watched, self._bars
        row = {"abuse": abuse.name, "unit": abuse.unit}
        # Whatever the one before has left is gone.
        before = watched.held()
        before["requests"] = before["pinned trees"] = before["calls"] = 0
        row["rss_before"] = watched.resident_bytes()
        watched.reset_peak()
        threads = row["threads_before"] = watched.threads()
        quiet, abused = [], []
        events = connections = ended = abuser_seconds = abuser_cpu = daemon_cpu = 0.0
        for _ in range(bars.rounds):
            start = time.monotonic()
            time.sleep(bars.seconds)
            quiet.append((start, time.monotonic()))
            cpu = watched.cpu_seconds()
            with Abuser(self._context, abuse, self._abuser_target, self._requests) as abuser:
                wait_until(lambda: abuser.counts[1], "the abuser begins")
                start = time.monotonic()
                time.sleep(bars.seconds)
                abused.append((start, time.monotonic()))
                daemon_cpu += watched.cpu_seconds() - cpu
                threads = max(threads, watched.threads())
                if abuse.is_let_go or abuse.ends:
                    self._await_freed(before, f"{abuse.name}, while it goes on",
                                      before if abuse.ends else ("requests", "pinned trees", "bytes of keys", "calls"))
            events, connections, ended = (
                total + one for total, one in zip((events, connections, ended), abuser.counts))
            abuser_seconds += abuser.seconds
            abuser_cpu += abuser.cpu_seconds
            row["freed_seconds"] = self._await_freed(before, f"after {abuse.name}", before)
        row["rss_peak"] = watched.peak_bytes()
        end = time.monotonic() + 10
        while watched.resident_bytes() - row["rss_before"] > bars.left_bytes and time.monotonic() < end:
            time.sleep(0.1)
        row["rss_after"] = watched.resident_bytes()
        row.update(threads=threads, events=int(events), connections=int(connections), ended=int(ended),
                   events_a_second=events / abuser_seconds, abuser_cores=abuser_cpu / abuser_seconds,
                   daemon_cores=daemon_cpu / sum(end - start for start, end in abused))
        self._note_tenant(row, tenant, quiet, abused)
        return row

    def _note_tenant(self, row, tenant, quiet, abused):
        of_quiet, of_abused = tenant.of(quiet), tenant.of(abused)
        everything = of_quiet + of_abused
        row["requests"] = len(of_abused)
        failures = [outcome.failure for outcome in everything if outcome.failure]
        row["failed"] = len(failures)
        row["failures"] = sorted(set(failures))
        row["wrong"] = sum(outcome.is_wrong for outcome in everything)
        row["new_connections"] = sum(outcome.by_new_connection and not outcome.failure for outcome in of_abused)
        for name, outcomes in (("quiet", of_quiet), ("abused", of_abused)):
            for share in (0.5, 0.99):
                row[f"{name}_p{share * 100:.0f}"] = percentile([outcome.seconds for outcome in outcomes], share)
        row["p50_ratio"] = row["abused_p50"] / row["quiet_p50"]
        row["p99_ratio"] = row["abused_p99"] / row["quiet_p99"]

    def judge(self, row):
        """What does not hold."""
        bars, wrongs = self._bars, []

        def expect(holds, what):
            if not holds:
                wrongs.append(f"{row['abuse']}: {what}")

        expect(row["requests"] > 0, "no request of the good tenant was due")
        expect(row["failed"] == 0, f"{row['failed']} requests of the good tenant failed: {row['failures']}")
        expect(row["wrong"] == 0, f"{row['wrong']} results are wrong")
        expect(row["new_connections"] > 0, "no new connection was served meanwhile")
        expect(row["rss_peak"] - row["rss_before"] <= bars.grown_bytes,
               f"resident memory grew by {(row['rss_peak'] - row['rss_before']) >> 20} MiB, expected at most "
               f"{bars.grown_bytes >> 20}")
        expect(row["rss_after"] - row["rss_before"] <= bars.left_bytes,
               f"{(row['rss_after'] - row['rss_before']) >> 20} MiB are left, expected at most {bars.left_bytes >> 20}")
        expect(row["threads"] - row["threads_before"] <= bars.grown_threads,
               f"{row['threads'] - row['threads_before']} threads more, expected at most {bars.grown_threads}")
        expect(row["p99_ratio"] <= bars.p99_ratio,
               f"p99 is {row['p99_ratio']:.2f} of what it is without, expected at most {bars.p99_ratio}")
        return wrongs


def show(row):
    print(f"{row['abuse']:28} {row['events_a_second']:9.0f} {row['unit']:11}/s {row['connections']:5} conn ({row['ended']} ended)"
          f" | {row['requests']:4} req {row['failed']} failed {row['wrong']} wrong {row['new_connections']:3} new"
          f" | p50 {row['quiet_p50'] * 1e3:5.1f} -> {row['abused_p50'] * 1e3:5.1f} ms"
          f" p99 {row['quiet_p99'] * 1e3:5.1f} -> {row['abused_p99'] * 1e3:6.1f} ms ({row['p99_ratio']:.2f})"
          f" | RSS {row['rss_before'] >> 20} peak {row['rss_peak'] >> 20} after {row['rss_after'] >> 20} MiB"
          f" | {row['threads']} threads, cores {row['daemon_cores']:.2f} daemon {row['abuser_cores']:.2f} abuser"
          f" | freed in {row['freed_seconds']:.1f} s", flush=True)


class Certificates:
    """An authority, a server's certificate and those of two tenants, in a directory."""

    def __init__(self, directory):
        self._directory = directory
        new_key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
        self._openssl("req", "-x509", *new_key, "-days", "2", "-subj", "/CN=authority",
                      "-keyout", self.path("ca.key"), "-out", self.path("ca.pem"))
        for name in ("cipherd", "good", "abuser"):
            self._openssl("req", *new_key, "-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}",
                          "-keyout", self.path(name + ".key"), "-out", self.path(name + ".csr"))
            self._openssl("x509", "-req", "-in", self.path(name + ".csr"), "-copy_extensions", "copyall", "-days", "2",
                          "-CA", self.path("ca.pem"), "-CAkey", self.path("ca.key"), "-CAcreateserial",
                          "-out", self.path(name + ".pem"))

    def path(self, name):
        return os.path.join(self._directory, name)

    def _openssl(self, *arguments):
        subprocess.run(["openssl", *arguments], check=True, capture_output=True)

    def daemon_flags(self):
        return ("--tls-cert", self.path("cipherd.pem"), "--tls-key", self.path("cipherd.key"),
                "--tls-client-ca", self.path("ca.pem"), "--tenant-requests", str(TENANT_REQUESTS))

    def connection(self, tenant):
        """For cipherctl."""
        return ("--tls", "--ca", self.path("ca.pem"), "--cert", self.path(tenant + ".pem"),
                "--cert-key", self.path(tenant + ".key"), "--server-name", "cipherd")

    def target(self, target, tenant):
        return dataclasses.replace(target, ca=self.path("ca.pem"), certificate=self.path(tenant + ".pem"),
                                   key=self.path(tenant + ".key"))


def run_all(chosen, tls, directory, bars, rate, rows, wrongs):
    """One after the other against one daemon and its good tenant; what comes of it goes into `rows` and `wrongs`."""
    context = multiprocessing.get_context("spawn")
    certificates = Certificates(directory) if tls else None
    with contextlib.ExitStack() as cleanup:
        daemon = Daemon(os.path.join(directory, "daemon"), *QUICK, *(certificates.daemon_flags() if tls else ()))
        cleanup.callback(daemon.stop)
        target = Target("127.0.0.1", int(daemon.address.rsplit(":", 1)[1]))
        targets, requests = {}, {}
        for tenant in ("good", "abuser"):
            targets[tenant] = certificates.target(target, tenant) if tls else target
            daemon.connection = certificates.connection(tenant) if tls else ()
            requests[tenant] = Requests.make(daemon, os.path.join(directory, tenant))
        run = AbuseRun(context, daemon, requests["abuser"], dataclasses.replace(targets["abuser"], source="127.0.0.2"), bars)
        with GoodTenant(context, targets["good"], requests["good"], rate) as tenant:
            wait_until(tenant.outcomes, "the good tenant begins")
            for abuse in chosen:
                try:
                    row = run.run(abuse, tenant)
                except AssertionError as error:
                    wrongs.append(f"{abuse.name}: {error}")
                    continue
                rows.append(row)
                show(row)
                wrongs += run.judge(row)
        if daemon.stop() != 0:
            wrongs.append("the daemon did not end well: " + daemon.log()[-2000:])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("abuses", nargs="*", help="only these; all where none is named")
    parser.add_argument("--measure", action="store_true", help="longer, with bars for a machine that has nothing else to do")
    parser.add_argument("--rate", type=int, help="requests a second of the good tenant")
    parser.add_argument("--json", help="a file for the table")
    parser.add_argument("--list", action="store_true", help="only the abuses' names")
    arguments = parser.parse_args()
    chosen = [abuse for abuse in abuses.ABUSES if not arguments.abuses or abuse.name in arguments.abuses]
    if arguments.list:
        print("\n".join(abuse.name for abuse in chosen))
        return 0
    if arguments.measure:
        bars, rate = Bars(seconds=3, rounds=3, p99_ratio=10), arguments.rate or 40
    else:
        bars, rate = Bars(seconds=1, rounds=1), arguments.rate or 20

    rows, wrongs = [], []
    for tls in (False, True):
        of_daemon = [abuse for abuse in chosen if abuse.tls == tls]
        if of_daemon:
            with tempfile.TemporaryDirectory(prefix="cipherd_abuse_") as directory:
                run_all(of_daemon, tls, directory, bars, rate, rows, wrongs)
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({"machine": platform.machine(), "processors": os.cpu_count(), "rate": rate,
                       "date": time.strftime("%Y-%m-%d"), "rows": rows}, file, indent=1)
    for wrong in wrongs:
        print("FAILED", wrong)
    return 1 if wrongs else 0


if __name__ == "__main__":
    sys.exit(main())
