"""One program, one secret key: arrays in, arrays out."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias, cast, overload

from cipherd import _cipherd
from cipherd._arrays import Array, ArrayLike, Rows, one_output, to_rows
from cipherd._closing import Closing
from cipherd.program import Program
from cipherd.result import OutputPart, RequestReport, Result
from cipherd.stream import AsyncOutputStream, OutputStream, Start

__all__ = ["Session"]

Inputs: TypeAlias = ArrayLike | Mapping[str, ArrayLike]
Outputs: TypeAlias = Array | dict[str, Array] | Result
Outcome: TypeAlias = tuple[dict[str, Array], list[tuple[str, dict[str, float], int, int]]]


class Session(Closing):
    """Evaluates a program under a secret key that stays here.

    From ``client.session(name)``. The secret key is made here, or read from a file; no call sends
    it, and ``close()``, or leaving a ``with`` block, wipes it. The evaluation keys that the program
    reads are made and uploaded by ``upload_keys``; the daemon computes with them and learns
    nothing::

        with client.session("fashion_mlp") as session:
            session.upload_keys()
            logits = session.evaluate(images)          # [n, 784] -> [n, 10], any n

    Any number of threads may evaluate at once. The interpreter's lock is free while C++ works or
    waits; Ctrl-C ends a call within a moment. A session cannot be pickled, nor used by a process
    that was forked after it was made.
    """

    _why_not_pickled = "holds a secret key and cannot be pickled"

    def __init__(self, session: _cipherd.Session, program: Program) -> None:
        self._session = session
        self._program = program

    @property
    def program(self) -> Program:
        """The program that this evaluates."""
        return self._program

    @property
    def key_set_id(self) -> str:
        """Name of the uploaded keys, 64 hexadecimal digits; empty before ``upload_keys``."""
        return self._session.key_set_id

    def upload_keys(
        self,
        progress: Callable[[int, int], object] | None = None,
        *,
        timeout: float | None = None,
    ) -> None:
        """Makes the evaluation keys and sends them; each is made while the one before is sent.

        Where the connection breaks, the upload goes on where it was.

        Args:
            progress: Called with the bytes sent and the bytes in all, after each chunk. What it
            raises
                ends the upload and comes out here.
            timeout: Seconds for the whole upload; 10 minutes unless given.
        """
        self._session.upload_keys(progress, timeout)

    def drop_keys(self, *, timeout: float | None = None) -> None:
        """Deletes the uploaded keys from the daemon."""
        self._session.drop_keys(timeout)

    @overload
    def evaluate(
        self,
        inputs: Mapping[str, ArrayLike],
        *,
        request_id: str = "",
        timeout: float | None = None,
        in_flight: int = 4,
        details: Literal[False] = False,
    ) -> dict[str, Array]: ...
    @overload
    def evaluate(
        self,
        inputs: ArrayLike,
        *,
        request_id: str = "",
        timeout: float | None = None,
        in_flight: int = 4,
        details: Literal[False] = False,
    ) -> Array: ...
    @overload
    def evaluate(
        self,
        inputs: Inputs,
        *,
        request_id: str = "",
        timeout: float | None = None,
        in_flight: int = 4,
        details: Literal[True],
    ) -> Result: ...
    def evaluate(
        self,
        inputs: Inputs,
        *,
        request_id: str = "",
        timeout: float | None = None,
        in_flight: int = 4,
        details: bool = False,
    ) -> Outputs:
        """Encrypts, has the daemon evaluate, decrypts.

        Args:
            inputs: For a program with one input and one output, an array ``[n, elements]``, or
                ``[elements]`` for one item, of any real dtype and memory layout; the result is the
                output's array ``[n, ...]``. Else, or as one likes, a dict of such arrays by name;
                the result is one too. ``n`` may be anything: items are split into requests of
                ``program.items_per_request``, and come back in their order.
            request_id: Stands in the daemon's log, at most 64 printable characters; with several
                requests, each adds a dot and its number. Made at random unless given.
            timeout: Seconds for the whole call; unless given, a minute for each request.
            in_flight: Requests at a time.
            details: Return a :class:`Result`, which has a report of each request beside the
            outputs.

        Raises:
            InvalidInputError: An input does not fit the program.
            FailedPreconditionError: Keys have not been uploaded.
            UnknownKeySetError: The daemon has the keys no more: upload them again.
            Error: And other errors of a call.
        """
        rows = to_rows(self._program, inputs)
        outcome = self._session.evaluate(rows.inputs, request_id, timeout, in_flight)
        return self._present(rows, outcome, details)

    @overload
    async def evaluate_async(
        self,
        inputs: Mapping[str, ArrayLike],
        *,
        request_id: str = "",
        timeout: float | None = None,
        in_flight: int = 4,
        details: Literal[False] = False,
    ) -> dict[str, Array]: ...
    @overload
    async def evaluate_async(
        self,
        inputs: ArrayLike,
        *,
        request_id: str = "",
        timeout: float | None = None,
        in_flight: int = 4,
        details: Literal[False] = False,
    ) -> Array: ...
    @overload
    async def evaluate_async(
        self,
        inputs: Inputs,
        *,
        request_id: str = "",
        timeout: float | None = None,
        in_flight: int = 4,
        details: Literal[True],
    ) -> Result: ...
    async def evaluate_async(
        self,
        inputs: Inputs,
        *,
        request_id: str = "",
        timeout: float | None = None,
        in_flight: int = 4,
        details: bool = False,
    ) -> Outputs:
        """``evaluate`` for asyncio: no thread waits, however many are under way.

        Arrays must not be changed before the result is there. Cancelling the task ends the
        requests.
        """
        rows = to_rows(self._program, inputs)
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Outcome] = loop.create_future()

        def deliver(outcome: Outcome | BaseException) -> None:
            if future.done():  # cancelled
                return
            if isinstance(outcome, BaseException):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)

        def on_outcome(outcome: object) -> None:
            try:
                loop.call_soon_threadsafe(deliver, cast("Outcome | BaseException", outcome))
            except RuntimeError:  # the loop is closed: nobody waits
                pass

        cancellation = self._session.start_evaluation(
            rows.inputs, request_id, timeout, in_flight, on_outcome, None
        )
        try:
            outcome = await future
        except asyncio.CancelledError:
            cancellation.cancel()
            raise
        return self._present(rows, outcome, details)

    def stream(
        self,
        inputs: Inputs,
        *,
        request_id: str = "",
        timeout: float | None = None,
        in_flight: int = 4,
    ) -> OutputStream:
        """Evaluates, and yields each output of each request as soon as it has come.

        The daemon sends an output once it is computed, while it computes the next: for programs
        with many outputs, such as the scores of a large gallery in blocks. Parts come in about
        that order, each once, and all of them unless an error is raised, which leaves those before
        it good. Arguments and errors are those of ``evaluate``, but that an array will do for the
        only input. Nothing waits for who iterates: parts that have come are kept until they are
        taken. The end of the ``with`` block, or of the stream's life, ends the evaluation::

            with session.stream(query) as parts:
                for part in parts:
                    best.update(part.output, part.values)
        """
        return OutputStream(self._stream_start(inputs, request_id, timeout, in_flight))

    def stream_async(
        self,
        inputs: Inputs,
        *,
        request_id: str = "",
        timeout: float | None = None,
        in_flight: int = 4,
    ) -> AsyncOutputStream:
        """``stream`` for asyncio: ``async for part in session.stream_async(query)``.

        To be called in a running loop. No thread waits. Arrays must not be changed before the last
        part is there.
        """
        return AsyncOutputStream(self._stream_start(inputs, request_id, timeout, in_flight))

    def encrypt(self, inputs: Inputs) -> bytes:
        """The encrypted inputs of one request, as a file of cipherctl holds them.

        At most ``program.items_per_request`` items. For ``client.evaluate_encrypted``.
        """
        return self._session.encrypt(to_rows(self._program, inputs).inputs)

    def decrypt(self, payload: bytes) -> dict[str, Array]:
        """The outputs, by name, of an answer to ``encrypt``'s bytes.

        For the owner of the key only: see :meth:`Cipher.decrypt`.
        """
        return self._session.decrypt(payload, None)

    def decrypt_for_sharing(
        self,
        payload: bytes,
        *,
        error_bound: float,
        statistical_bits: int = 30,
        result_count: int = 1,
    ) -> dict[str, Array]:
        """``decrypt`` with noise for others' eyes: see :meth:`Cipher.decrypt_for_sharing`."""
        flooding = _cipherd.FloodingOptions(error_bound, statistical_bits, result_count)
        return self._session.decrypt(payload, flooding)

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Keeps the session's keys in a directory, as ``cipherctl keygen`` and ``put-keys`` do.

        ``client.load_session``, ``Cipher.load`` and ``cipherctl`` go on from there. Written are the
        secret key (``secret.key``, mode 0600), what the daemon said of the program, and the name of
        the uploaded keys, where they were.

        Raises:
            AlreadyExistsError: The directory has another secret key: it is never overwritten.
        """
        self._session.save(self._program._program, os.fspath(directory))

    def close(self) -> None:
        """Ends calls under way (:class:`CancelledError`) and wipes the secret key. Idempotent.

        Uploaded keys stay at the daemon, for a session that is loaded from ``save``; ``drop_keys``
        deletes them.
        """
        self._session.close()

    def __repr__(self) -> str:
        keys = "keys uploaded" if self.key_set_id else "no keys uploaded"
        return f"<cipherd.Session of {self._program.name}, {keys}>"

    def _stream_start(
        self, inputs: Inputs, request_id: str, timeout: float | None, in_flight: int
    ) -> Start:
        rows = to_rows(self._program, inputs, by_part=True)

        def start(put: Callable[[object], None]) -> _cipherd.Cancellation:
            def on_output(output: str, first_item: int, values: Array) -> None:
                shaped = rows.shape_outputs({output: values})[output]
                put(OutputPart(output, first_item, shaped))

            return self._session.start_evaluation(
                rows.inputs, request_id, timeout, in_flight, put, on_output
            )

        return start

    def _present(self, rows: Rows, outcome: Outcome, details: bool) -> Outputs:
        outputs = rows.shape_outputs(outcome[0])
        if details:
            return Result(outputs, tuple(RequestReport(*report) for report in outcome[1]))
        return outputs if rows.is_mapping else one_output(self._program, outputs)
