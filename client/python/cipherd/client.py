"""A connection to a daemon."""

from __future__ import annotations

import os
from dataclasses import dataclass

from cipherd import _cipherd
from cipherd._closing import Closing
from cipherd.program import Program, ProgramSummary
from cipherd.result import RequestReport
from cipherd.session import Session

__all__ = ["Client", "ServerInfo", "Tls", "connect"]


@dataclass(frozen=True)
class Tls:
    """How to connect with TLS: PEM files."""

    ca: str | os.PathLike[str] | None = None
    """Who signs the daemon's certificate; the system's authorities unless given."""
    certificate: str | os.PathLike[str] | None = None
    """This client's certificate, for mutual TLS: the daemon knows tenants by it."""
    private_key: str | os.PathLike[str] | None = None
    """Of the certificate."""
    server_name: str = ""
    """Name in the daemon's certificate, where it is not the address's."""


@dataclass(frozen=True)
class ServerInfo:
    """What a daemon says of itself."""

    version: str
    device: str
    device_name: str
    max_chunk_bytes: int
    max_unary_bytes: int
    max_request_bytes: int
    max_key_set_bytes: int
    insecure_contexts_allowed: bool


def connect(
    target: str,
    *,
    tls: Tls | bool = False,
    allow_plain_text: bool = False,
    token: str = "",
    token_file: str | os.PathLike[str] = "",
    timeout: float = 10.0,
    allow_insecure_contexts: bool = False,
) -> Client:
    """Connects to a daemon.

    Args:
        target: ``"host:port"``, ``"127.0.0.1:7480"``, ``"unix:/run/cipherd.sock"``.
        tls: ``True``, or a :class:`Tls`. Without it, only this machine is connected to.
        allow_plain_text: Connect to another machine without TLS all the same.
        token: Sent as ``authorization: Bearer ...``, for a daemon that knows its tenants by
            tokens, or a proxy that asks for one.
        token_file: Has the token in its first line, in the place of ``token``. Read again whenever
            it has changed: whoever renews the token only writes the file.
        timeout: Seconds until the daemon must have answered.
        allow_insecure_contexts: Take programs below 128-bit security: for tests.

    Raises:
        AccessDeniedError: The daemon asks for a token, or refuses this one.
        UnavailableError: Nobody answers.
        InvalidInputError: The address is refused, or a file is no PEM file.
        NotFoundError: A file is not there.
    """
    files: tuple[str, str, str, str] | None = None
    if tls is not False:
        given = Tls() if tls is True else tls
        paths = (given.ca, given.certificate, given.private_key)
        ca, certificate, private_key = (os.fspath(path) if path else "" for path in paths)
        files = (ca, certificate, private_key, given.server_name)
    return Client(
        _cipherd.Client.connect(
            target,
            files,
            allow_plain_text,
            token,
            os.fspath(token_file),
            timeout,
            allow_insecure_contexts,
        ),
        allow_insecure_contexts,
    )


class Client(Closing):
    """A connection to a daemon, from :func:`connect`.

    Holds no secrets. Thread-safe. ``close()``, or leaving a ``with`` block, ends it and the calls
    of its sessions; their keys are wiped by their own ``close()``.

    gRPC does not survive ``fork()``: a process that was forked after the connection was made cannot
    use it, nor connect itself, and is told so (:class:`FailedPreconditionError`). Start processes
    by ``multiprocessing.get_context("spawn")``, or connect in the children only.
    """

    _why_not_pickled = "is a connection and cannot be pickled"

    def __init__(self, client: _cipherd.Client, allow_insecure_contexts: bool) -> None:
        self._client = client
        self._allow_insecure_contexts = allow_insecure_contexts

    @property
    def server_info(self) -> ServerInfo:
        """The daemon's, of the time of the connection."""
        version, device, device_name, limits, insecure = self._client.server_info
        return ServerInfo(version, device, device_name, *limits, insecure)

    def programs(self, *, timeout: float | None = None) -> list[ProgramSummary]:
        """Every version of every program that the daemon serves."""
        return [ProgramSummary(*summary) for summary in self._client.list_programs(timeout)]

    def program(
        self, name: str, *, version: int | None = None, timeout: float | None = None
    ) -> Program:
        """What the daemon says of a program, checked.

        Without ``version`` it is the newest that is ready, and evaluations go to whichever that is
        by then; with it, they go to exactly that one.

        Raises:
            UnknownProgramError: The daemon does not serve it.
        """
        return Program(self._client.get_program(name, version or 0, timeout))

    def session(
        self,
        program: str | Program,
        *,
        version: int | None = None,
        secret_key: str | os.PathLike[str] | None = None,
        key_set_id: str = "",
    ) -> Session:
        """A session of a program, with a new secret key.

        Args:
            program: A name, or what ``program()`` returned.
            version: As in ``program()``, where a name is given.
            secret_key: File of an earlier secret key (``secret.key`` of a directory of keys), in
            place
                of a new one. It must be private (mode 0600) and belong to the program's context.
            key_set_id: Keys of that secret key that were uploaded before.
        """
        described = (
            program if isinstance(program, Program) else self.program(program, version=version)
        )
        path = None if secret_key is None else os.fspath(secret_key)
        session = _cipherd.Session.create(self._client, described._program, path, key_set_id)
        return Session(session, described)

    def load_session(self, directory: str | os.PathLike[str]) -> Session:
        """The session that ``session.save`` kept, or whose keys ``cipherctl keygen`` made.

        Where keys were uploaded they need not be again, unless an evaluation raises
        :class:`UnknownKeySetError`.
        """
        program = Program.load(
            os.path.join(directory, "program"),
            allow_insecure_contexts=self._allow_insecure_contexts,
        )
        try:
            with open(os.path.join(directory, "key_set_id"), encoding="ascii") as file:
                key_set_id = file.read().strip()
        except FileNotFoundError:
            key_set_id = ""
        secret_key = os.path.join(directory, "secret.key")
        return self.session(program, secret_key=secret_key, key_set_id=key_set_id)

    def evaluate_encrypted(
        self,
        program: Program,
        key_set_id: str,
        payload: bytes,
        *,
        request_id: str = "",
        timeout: float | None = None,
    ) -> tuple[bytes, RequestReport]:
        """Has the daemon evaluate what ``encrypt`` of a session or cipher returned.

        Needs no secret key: a gateway can call it for the owner of one. The answer's bytes are for
        ``decrypt``.
        """
        answer, report = self._client.evaluate_payload(
            program._program, key_set_id, payload, request_id, timeout
        )
        return answer, RequestReport(*report)

    def drop_keys(self, key_set_id: str, *, timeout: float | None = None) -> None:
        """Deletes uploaded keys of this client from the daemon."""
        self._client.drop_keys(key_set_id, timeout)

    def close(self) -> None:
        """Ends the connection, and calls under way with :class:`CancelledError`. Idempotent."""
        self._client.close()
