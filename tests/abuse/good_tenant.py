"""A tenant who evaluates at a steady rate and compares every result, and every second comes by a new connection.

In a process of its own. Latency counts from when a request was due, so that a daemon that stalls cannot hide it.
"""

import dataclasses
import threading
import time

import grpc

from peer import EVALUATE

# Of a call. Under this a request has failed.
PATIENCE_SECONDS = 30


@dataclasses.dataclass
class Outcome:
    due: float
    seconds: float
    # Code and message of a failure.
    failure: str = ""
    is_wrong: bool = False
    by_new_connection: bool = False


def _open(target):
    # Without, gRPC would share a connection.
    options = [("grpc.use_local_subchannel_pool", 1)]
    address = f"{target.host}:{target.port}"
    if not target.ca:
        return grpc.insecure_channel(address, options)
    contents = []
    for path in (target.ca, target.key, target.certificate):
        with open(path, "rb") as file:
            contents.append(file.read())
    credentials = grpc.ssl_channel_credentials(*contents)
    return grpc.secure_channel(address, credentials, [*options, ("grpc.ssl_target_name_override", target.server_name)])


class _Tenant:
    def __init__(self, target, requests, rate, outcomes):
        self._target = target
        self._requests = requests
        self._rate = rate
        self._outcomes = outcomes
        self._lock = threading.Lock()
        self._under_way = 0

    def _send(self, channel, due, by_new_connection):
        call = channel.unary_unary(EVALUATE).future(self._requests.evaluate, timeout=PATIENCE_SECONDS)
        with self._lock:
            self._under_way += 1

        def note(done):
            outcome = Outcome(due, time.monotonic() - due, by_new_connection=by_new_connection)
            if done.code() != grpc.StatusCode.OK:
                outcome.failure = f"{done.code().name}: {done.details()}"
            else:
                outcome.is_wrong = not self._requests.is_right(done.result())
            self._outcomes.put(outcome)
            with self._lock:
                self._under_way -= 1

        call.add_done_callback(note)
        return call

    def run(self, stop):
        start = time.monotonic()
        channel, fresh = _open(self._target), []
        sent = 0
        while not stop.is_set():
            due = start + sent / self._rate
            if (wait := due - time.monotonic()) > 0:
                time.sleep(wait)
            if sent % self._rate == 0:
                channel_of_its_own = _open(self._target)
                fresh.append((channel_of_its_own, self._send(channel_of_its_own, due, by_new_connection=True)))
                while fresh and fresh[0][1].done():
                    fresh.pop(0)[0].close()
            else:
                self._send(channel, due, by_new_connection=False)
            sent += 1
        while True:
            with self._lock:
                if not self._under_way:
                    break
            time.sleep(0.01)
        for each in (channel, *(opened for opened, _ in fresh)):
            each.close()


def run(target, requests, rate, outcomes, stop):
    """`rate` requests a second, whole, until `stop`; outcomes go into the queue."""
    _Tenant(target, requests, rate, outcomes).run(stop)
