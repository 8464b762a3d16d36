"""What can go wrong, by what one does about it.

Every error of this package is an :class:`Error`. Its attributes say more::

    try:
        logits = session.evaluate(images)
    except cipherd.UnknownKeySetError:      # the daemon was restarted, or made room
        session.upload_keys()
        logits = session.evaluate(images)
    except cipherd.OverloadedError as error:
        time.sleep(error.retry_delay or 1.0)

Messages name the place, what was expected and what was found; they never hold data, keys or
ciphertexts.
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "AccessDeniedError",
    "AlreadyExistsError",
    "CancelledError",
    "DeadlineExceededError",
    "Error",
    "FailedPreconditionError",
    "InternalError",
    "InvalidInputError",
    "LimitExceededError",
    "NotFoundError",
    "OutOfRangeError",
    "OverloadedError",
    "UnavailableError",
    "UnknownKeySetError",
    "UnknownProgramError",
    "WrongKeysError",
]


class Error(Exception):
    """Base of this package's errors."""

    code: str
    """Name of the status code, as ``"INVALID_ARGUMENT"``."""

    reason: str
    """Why the daemon refused, as ``"UNKNOWN_KEY_SET"``; empty where it did not say."""

    path: str
    """The field at fault, as ``"inputs['images']"``; empty where there is none."""

    message: str
    """The whole message, in one line."""

    retry_delay: float | None
    """Seconds to wait at least before the same call is tried again, where the daemon said so."""

    def __init__(
        self,
        message: str,
        *,
        code: str = "UNKNOWN",
        reason: str = "",
        path: str = "",
        retry_delay: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.reason = reason
        self.path = path
        self.retry_delay = retry_delay

    def __str__(self) -> str:
        return f"{self.message} [{self.reason or self.code}]"

    def __reduce__(self) -> tuple[Any, ...]:
        details = (self.message, self.code, self.reason, self.path, self.retry_delay)
        return _rebuild, (type(self), *details)


class InvalidInputError(Error, ValueError):
    """An argument does not fit: mend it. ``path`` names it."""


class OutOfRangeError(InvalidInputError):
    """An item is unlike those that the program was planned for: its result would be wrong, or is.
    ``path`` names the number, as ``"inputs['x'][17][3]"``, or ``"outputs['scores'][17][0]"`` where
    only the result shows it.
    """


class FailedPreconditionError(Error):
    """Not at this time: keys are not uploaded yet, the object is closed, a file is not private."""


class UnknownKeySetError(Error):
    """The daemon does not have the keys, or has them no more: upload them and try again."""


class WrongKeysError(Error):
    """Keys or ciphertexts are not those of the program: open a new session for it."""


class UnknownProgramError(Error):
    """The daemon does not serve this program, or this version: see ``client.programs()``."""


class NotFoundError(Error):
    """A file, or something at the daemon, is not there."""


class AlreadyExistsError(Error):
    """A file is there already, and is not overwritten: secret keys never are."""


class OverloadedError(Error):
    """Queue, memory or quota is full: wait for ``retry_delay`` seconds and try again."""


class LimitExceededError(Error):
    """More bytes or items than the daemon ever takes: send less at once."""


class UnavailableError(Error):
    """Nobody answers, the connection broke, or the daemon is shutting down: try again later."""


class DeadlineExceededError(Error, TimeoutError):
    """Not done in time: try again, or give more time (``timeout=``)."""


class CancelledError(Error):
    """The call was ended early: its client or session was closed meanwhile."""


class AccessDeniedError(Error):
    """The daemon, or a proxy before it, does not know or does not admit this client."""


class InternalError(Error):
    """A fault of the daemon's, or an answer of it that was refused: report it."""


_BY_REASON: dict[str, type[Error]] = {
    "UNKNOWN_KEY_SET": UnknownKeySetError,
    "MISSING_KEY": WrongKeysError,
    "WRONG_CONTEXT": WrongKeysError,
    "UNKNOWN_PROGRAM": UnknownProgramError,
    "OVERLOADED": OverloadedError,
    "LIMIT_EXCEEDED": LimitExceededError,
    "UNAVAILABLE": UnavailableError,
    "STALLED": UnavailableError,
}

_BY_CODE: dict[str, type[Error]] = {
    "INVALID_ARGUMENT": InvalidInputError,
    "OUT_OF_RANGE": OutOfRangeError,
    "FAILED_PRECONDITION": FailedPreconditionError,
    "NOT_FOUND": NotFoundError,
    "ALREADY_EXISTS": AlreadyExistsError,
    "RESOURCE_EXHAUSTED": LimitExceededError,
    "UNAVAILABLE": UnavailableError,
    "DEADLINE_EXCEEDED": DeadlineExceededError,
    "CANCELLED": CancelledError,
    "PERMISSION_DENIED": AccessDeniedError,
    "UNAUTHENTICATED": AccessDeniedError,
}


def _rebuild(
    kind: type[Error], message: str, code: str, reason: str, path: str, retry_delay: float | None
) -> Error:
    return kind(message, code=code, reason=reason, path=path, retry_delay=retry_delay)


def from_status(
    code: str, reason: str, path: str, message: str, retry_delay: float | None
) -> Error:
    """The error of a status: by its reason, else by its code. Called by the extension."""
    kind = _BY_REASON.get(reason) or _BY_CODE.get(code, InternalError)
    return _rebuild(kind, message, code, reason, path, retry_delay)


def invalid_input(path: str, what: str) -> InvalidInputError:
    """The error of an argument that does not fit."""
    return InvalidInputError(f"{path}: {what}", code="INVALID_ARGUMENT", path=path)
