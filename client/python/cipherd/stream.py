"""Outputs one by one, as they come."""

from __future__ import annotations

import asyncio
import os
import queue
from collections.abc import AsyncIterator, Callable, Iterator
from types import TracebackType
from typing import Self, TypeAlias, cast

from cipherd import _cipherd
from cipherd._closing import Closing
from cipherd.errors import FailedPreconditionError
from cipherd.result import OutputPart, RequestReport

__all__ = ["AsyncOutputStream", "OutputStream"]

# Starts an evaluation that puts its parts, then its outcome or an exception, from threads of
# cipherd's.
Start: TypeAlias = Callable[[Callable[[object], None]], _cipherd.Cancellation]
_Reports: TypeAlias = list[tuple[str, dict[str, float], int, int]]


class _Stream(Closing):
    """What both kinds have in common: the evaluation, and its end."""

    _why_not_pickled = "is an evaluation under way and cannot be pickled"

    def __init__(self) -> None:
        self._cancellation: _cipherd.Cancellation | None = None
        self._requests: tuple[RequestReport, ...] | None = None
        self._is_open = True
        self._process = os.getpid()

    @property
    def requests(self) -> tuple[RequestReport, ...]:
        """A report for each request in the order of the items, once iteration has ended."""
        if self._requests is None:
            raise RuntimeError("the stream has not come to its end")
        return self._requests

    def close(self) -> None:
        """Ends the evaluation where it has not come to its end. Idempotent."""
        self._is_open = False
        # What a process has forked from this one leaves the parent's evaluation alone.
        if self._cancellation is not None and os.getpid() == self._process:
            self._cancellation.cancel()

    def __del__(self) -> None:
        self.close()

    def _is_to_be_read(self) -> bool:
        if self._is_open and os.getpid() != self._process:
            raise FailedPreconditionError(
                "stream: made by the process that this one was forked from", code="FAILED_PRECONDITION"
            )
        return self._is_open

    def _take(self, item: object) -> OutputPart | None:
        """A part; None at the end; raises what the evaluation ended with."""
        if isinstance(item, OutputPart):
            return item
        self._is_open = False
        if isinstance(item, BaseException):
            raise item
        _, reports = cast("tuple[object, _Reports]", item)
        self._requests = tuple(RequestReport(*report) for report in reports)
        return None


class OutputStream(_Stream, Iterator[OutputPart]):
    """From ``session.stream``: iterate over it, once.

    ``close()``, the end of a ``with`` block or of its life ends an evaluation that is under way.
    Used by one thread at a time.
    """

    def __init__(self, start: Start) -> None:
        super().__init__()
        self._items: queue.SimpleQueue[object] = queue.SimpleQueue()
        self._cancellation = start(self._items.put)

    def __next__(self) -> OutputPart:
        part = self._take(self._items.get()) if self._is_to_be_read() else None
        if part is None:
            raise StopIteration
        return part


class AsyncOutputStream(_Stream, AsyncIterator[OutputPart]):
    """From ``session.stream_async``: ``async for`` over it, once.

    ``close()``, the end of an ``async with`` block or of its life, and cancelling the task that
    waits for a part end an evaluation that is under way.
    """

    def __init__(self, start: Start) -> None:
        super().__init__()
        loop = asyncio.get_running_loop()
        items: asyncio.Queue[object] = asyncio.Queue()

        def put(item: object) -> None:
            try:
                loop.call_soon_threadsafe(items.put_nowait, item)
            except RuntimeError:  # the loop is closed: nobody waits
                pass

        self._items = items
        self._cancellation = start(put)

    async def __anext__(self) -> OutputPart:
        part = None
        if self._is_to_be_read():
            try:
                item = await self._items.get()
            except asyncio.CancelledError:
                self.close()
                raise
            part = self._take(item)
        if part is None:
            raise StopAsyncIteration
        return part

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
