"""A program's answers for many items, and what they cost."""

import statistics
import time
from dataclasses import dataclass

import cipherd
import numpy as np
import numpy.typing as npt

_LONE_REQUEST_COUNT = 8


@dataclass(frozen=True)
class Measurement:
    """What ``measure`` found."""

    outputs: npt.NDArray[np.float64]
    """Decrypted, [n, elements]."""
    request_count: int
    items_per_request: int
    ring_degree: int
    evaluation_seconds: float
    """At the daemon, of one ciphertext: the median of requests that come one at a time."""
    round_trip_seconds: float
    """From numbers to decrypted numbers, of the same requests, their mean."""
    total_seconds: float
    """For all items."""
    key_bytes: int
    key_seconds: float
    """To make and upload the keys."""
    sent_bytes: int
    """Of one request."""
    received_bytes: int

    @property
    def items_per_second(self) -> float:
        """Over all items: encrypted, sent, evaluated, decrypted."""
        return len(self.outputs) / self.total_seconds


def measure(target: str, program: str, rows: npt.NDArray[np.float64], *, in_flight: int) -> Measurement:
    """Evaluates ``rows`` [n, elements] with new keys: first some requests one at a time, then all."""
    with cipherd.connect(target) as client, client.session(program) as session:
        start = time.monotonic()
        session.upload_keys()
        key_seconds = time.monotonic() - start

        item_count = session.program.items_per_request
        some = rows[: _LONE_REQUEST_COUNT * item_count]
        session.evaluate({_input(session): some[:item_count]})  # the daemon's first is not like the others
        start = time.monotonic()
        lone = session.evaluate({_input(session): some}, in_flight=1, details=True).requests
        round_trip_seconds = (time.monotonic() - start) / len(lone)

        start = time.monotonic()
        result = session.evaluate({_input(session): rows}, in_flight=in_flight, details=True)
        total_seconds = time.monotonic() - start
        (outputs,) = result.outputs.values()
        return Measurement(
            outputs=np.asarray(outputs, dtype=np.float64).reshape(len(rows), -1),
            request_count=len(result.requests),
            items_per_request=item_count,
            ring_degree=session.program.ring_degree,
            evaluation_seconds=statistics.median(one.stage_seconds["replay"] for one in lone),
            round_trip_seconds=round_trip_seconds,
            total_seconds=total_seconds,
            key_bytes=session.program.key_bytes,
            key_seconds=key_seconds,
            sent_bytes=result.requests[0].sent_bytes,
            received_bytes=result.requests[0].received_bytes,
        )


def _input(session: cipherd.Session) -> str:
    (one,) = session.program.inputs
    return one.name
