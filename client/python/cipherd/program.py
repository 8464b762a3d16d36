"""Programs as their users see them."""

from __future__ import annotations

import os
from dataclasses import dataclass

from cipherd import _cipherd

__all__ = ["Input", "Layout", "Output", "Program", "ProgramSummary"]


@dataclass(frozen=True)
class Layout:
    """Where numbers stand among the slots of a ciphertext.

    Element ``j`` of item ``k`` is in slot ``element_stride * j + item_stride * k``.
    """

    item_count: int
    item_stride: int
    element_count: int
    element_stride: int


@dataclass(frozen=True)
class Input:
    """One input of a program: arrays ``[n, layout.element_count]``."""

    name: str
    description: str
    layout: Layout
    depth: int
    scale: float
    lower: float
    """Numbers that the program was planned for: ``evaluate`` and ``encrypt`` refuse others. 0 and 0
    where the program does not state them.
    """
    upper: float


@dataclass(frozen=True)
class Output:
    """One output of a program: arrays ``[n, layout.element_count]``."""

    name: str
    description: str
    layout: Layout
    magnitude_bound: float
    """Largest magnitude that a number is expected to have: decrypted ones that are more than four
    times as large are refused. 0 where it is not stated.
    """


@dataclass(frozen=True)
class ProgramSummary:
    """A line of ``client.programs()``: one version of a program."""

    name: str
    version: int
    description: str
    ready: bool


class Program:
    """A program of a daemon: what it takes, what it returns, and the keys that it reads.

    Comes from ``client.program(name)`` or ``session.program``; its context has been checked (valid,
    128-bit secure, its id its own hash).
    """

    def __init__(self, program: _cipherd.Program) -> None:
        self._program = program

    @staticmethod
    def load(path: str | os.PathLike[str], *, allow_insecure_contexts: bool = False) -> Program:
        """Reads what ``save`` or ``cipherctl keygen`` wrote (the file ``program``)."""
        return Program(_cipherd.Program.load(os.fspath(path), allow_insecure_contexts))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the description to a file, which ``load`` and ``cipherctl`` read."""
        self._program.save(os.fspath(path))

    @property
    def name(self) -> str:
        """Name at the daemon."""
        return self._program.name

    @property
    def version(self) -> int:
        """The version that this describes."""
        return self._program.version

    @property
    def description(self) -> str:
        """What the program is for, in its author's words."""
        return self._program.description

    @property
    def inputs(self) -> tuple[Input, ...]:
        """What it takes, in its order."""
        return tuple(
            Input(name, description, Layout(*layout), depth, scale, lower, upper)
            for name, description, layout, depth, scale, lower, upper in self._program.inputs
        )

    @property
    def outputs(self) -> tuple[Output, ...]:
        """What it returns, in its order."""
        return tuple(
            Output(name, description, Layout(*layout), bound)
            for name, description, layout, bound in self._program.outputs
        )

    @property
    def items_per_request(self) -> int:
        """Items that one ciphertext of each input holds; more are split into several requests."""
        return self._program.items_per_request

    @property
    def required_keys(self) -> tuple[str, ...]:
        """The evaluation keys that it reads, as ``"relinearization"``, ``"rotation(64)"``."""
        return tuple(self._program.required_keys)

    @property
    def key_bytes(self) -> int:
        """Bytes of these keys: what ``upload_keys`` sends."""
        return self._program.key_bytes

    @property
    def input_bytes(self) -> int:
        """Bytes of the encrypted inputs of one request."""
        return self._program.input_bytes

    @property
    def output_bytes(self) -> int:
        """Bytes of the encrypted outputs of one request."""
        return self._program.output_bytes

    @property
    def context_id(self) -> str:
        """SHA-256 of all numbers that encryption depends on, 64 hexadecimal digits."""
        return self._program.context_id

    @property
    def ring_degree(self) -> int:
        """N; a ciphertext has N / 2 slots."""
        return self._program.ring_degree

    def __repr__(self) -> str:
        inputs = ", ".join(f"{one.name}[n, {one.layout.element_count}]" for one in self.inputs)
        outputs = ", ".join(f"{one.name}[n, {one.layout.element_count}]" for one in self.outputs)
        return f"<cipherd.Program {self.name} {self.version}: {inputs} -> {outputs}>"

    def __reduce__(self) -> str | tuple[object, ...]:
        raise TypeError("a cipherd.Program cannot be pickled: use save() and load()")
