"""Encryption and decryption without a connection."""

from __future__ import annotations

import os
from collections.abc import Mapping

from cipherd import _cipherd
from cipherd._arrays import Array, ArrayLike, to_rows
from cipherd._closing import Closing
from cipherd.program import Program

__all__ = ["Cipher"]


class Cipher(Closing):
    """Encrypts what a program takes and decrypts what it returns, as bytes, offline.

    The bytes are those of cipherctl's files: what one wrote the other reads. The daemon's part, and
    a gateway's, is ``client.evaluate_encrypted``, which needs no secret key::

        with cipherd.Cipher.load("keys") as cipher:
            request = cipher.encrypt(images[:8])      # at most program.items_per_request items
            ...
            logits = cipher.decrypt(answer)["logits"]

    Thread-safe. ``close()``, or leaving a ``with`` block, wipes the secret key.
    """

    _why_not_pickled = "holds a secret key and cannot be pickled"

    def __init__(self, program: Program, secret_key: str | os.PathLike[str]) -> None:
        """Reads the secret key from its file, which must be private (mode 0600)."""
        self._program = program
        self._cipher = _cipherd.Cipher.load(program._program, os.fspath(secret_key))

    @classmethod
    def load(
        cls, directory: str | os.PathLike[str], *, allow_insecure_contexts: bool = False
    ) -> Cipher:
        """From a directory of ``session.save`` or ``cipherctl keygen``."""
        program = Program.load(
            os.path.join(directory, "program"), allow_insecure_contexts=allow_insecure_contexts
        )
        return cls(program, os.path.join(directory, "secret.key"))

    @property
    def program(self) -> Program:
        """The program whose inputs and outputs these are."""
        return self._program

    def encrypt(self, inputs: ArrayLike | Mapping[str, ArrayLike]) -> bytes:
        """The encrypted inputs of one request: at most ``program.items_per_request`` items."""
        return self._cipher.encrypt(to_rows(self._program, inputs).inputs)

    def decrypt(self, payload: bytes) -> dict[str, Array]:
        """The outputs, by name, of an answer to ``encrypt``'s bytes.

        For the owner of the key only: what CKKS decrypts to holds information on the key.
        """
        return self._cipher.decrypt(payload, None)

    def decrypt_for_sharing(
        self,
        payload: bytes,
        *,
        error_bound: float,
        statistical_bits: int = 30,
        result_count: int = 1,
    ) -> dict[str, Array]:
        """The outputs with noise that hides what they would say of the key to others.

        Args:
            payload: The answer.
            error_bound: Of the ciphertext's error, each coefficient's magnitude before division by
                the scale, as the analysis of the program gives it.
            statistical_bits: Results with and without the error then differ by a statistical
            distance
                of at most 2**-statistical_bits; 1 to 38.
            result_count: Results that are shared under this key in its whole life.
        """
        flooding = _cipherd.FloodingOptions(error_bound, statistical_bits, result_count)
        return self._cipher.decrypt(payload, flooding)

    def close(self) -> None:
        """Wipes the secret key. Calls under way end first; later ones raise."""
        self._cipher.close()

    def __repr__(self) -> str:
        return f"<cipherd.Cipher for {self._program.name}>"
