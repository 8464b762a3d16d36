"""What an evaluation returns beside its numbers."""

from __future__ import annotations

from dataclasses import dataclass

from cipherd._arrays import Array

__all__ = ["OutputPart", "RequestReport", "Result"]


@dataclass(frozen=True)
class OutputPart:
    """One output of one request, as it came."""

    output: str
    first_item: int
    """Of all the items that are evaluated, the first one of these."""
    values: Array
    """``[items, elements]``, or ``[elements]`` where the inputs were one item."""


@dataclass(frozen=True)
class RequestReport:
    """One request of an evaluation."""

    request_id: str
    """Stands in the daemon's log."""
    stage_seconds: dict[str, float]
    """Seconds in each stage at the daemon: decode, queue (of which batch_wait and device_wait),
    transfer_in, replay, transfer_out, encode."""
    sent_bytes: int
    received_bytes: int


@dataclass(frozen=True)
class Result:
    """Outputs by name, and a report for each request in the order of the items."""

    outputs: dict[str, Array]
    requests: tuple[RequestReport, ...]
