"""What is closed at the end of a ``with`` block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import ClassVar, NoReturn, Self

__all__ = ["Closing"]


class Closing(ABC):
    """Has a ``close()``, and holds what no other process may have: it cannot be pickled."""

    _why_not_pickled: ClassVar[str]

    @abstractmethod
    def close(self) -> None:
        """Idempotent."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"a cipherd.{type(self).__name__} {self._why_not_pickled}")
