"""Client of cipherd, a daemon that computes on encrypted data.

    import cipherd

    with cipherd.connect("127.0.0.1:7480") as client, client.session("fashion_mlp") as session:
        session.upload_keys()
        logits = session.evaluate(images)      # NumPy [n, 784] in, [n, 10] out

Keys, encryption and decryption are C++ (client/session.h of the repository); this package gives
them NumPy arrays, asyncio, and exceptions that say what to do (:mod:`cipherd.errors`).
"""

from cipherd.cipher import Cipher
from cipherd.client import Client, ServerInfo, Tls, connect
from cipherd.errors import (
    AccessDeniedError,
    AlreadyExistsError,
    CancelledError,
    DeadlineExceededError,
    Error,
    FailedPreconditionError,
    InternalError,
    InvalidInputError,
    LimitExceededError,
    NotFoundError,
    OutOfRangeError,
    OverloadedError,
    UnavailableError,
    UnknownKeySetError,
    UnknownProgramError,
    WrongKeysError,
)
from cipherd.program import Input, Layout, Output, Program, ProgramSummary
from cipherd.result import OutputPart, RequestReport, Result
from cipherd.session import Session
from cipherd.stream import AsyncOutputStream, OutputStream

__all__ = [
    "AccessDeniedError",
    "AlreadyExistsError",
    "AsyncOutputStream",
    "CancelledError",
    "Cipher",
    "Client",
    "DeadlineExceededError",
    "Error",
    "FailedPreconditionError",
    "Input",
    "InternalError",
    "InvalidInputError",
    "Layout",
    "LimitExceededError",
    "NotFoundError",
    "OutOfRangeError",
    "Output",
    "OutputPart",
    "OutputStream",
    "OverloadedError",
    "Program",
    "ProgramSummary",
    "RequestReport",
    "Result",
    "ServerInfo",
    "Session",
    "Tls",
    "UnavailableError",
    "UnknownKeySetError",
    "UnknownProgramError",
    "WrongKeysError",
    "connect",
]
