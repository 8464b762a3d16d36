"""A plaintext gallery as a program, and the nearest of its vectors to encrypted queries."""

import time
from dataclasses import dataclass, field

import cipherd
import numpy as np
import numpy.typing as npt

from cipherd.models import Model, PlannedProgram

Array = npt.NDArray[np.float64]

# Where the search for the size of a block begins: a ciphertext of the smallest secure ring has so many slots.
_LEAST_BLOCK_SIZE = 2048
_ERROR_BIN_COUNT = 61


def model_of(gallery: Array, block_size: int) -> Model:
    """Scores of one query, a block of the gallery each: products with ``block_size`` of its vectors."""
    model = Model("gallery", description=f"cosines of a query and {len(gallery)} vectors")
    query = model.input("query", [gallery.shape[1]], description="of unit length")
    for k, first in enumerate(range(0, len(gallery), block_size)):
        block = model.linear(query, gallery[first : first + block_size], name=f"block_{k:02}")
        model.output(f"scores_{k:02}", block)
    return model


def choose_block_size(gallery: Array, samples: Array, max_error: float) -> int:
    """As many vectors as a ciphertext has slots, in the context that the planner picks for such a block."""
    size = _LEAST_BLOCK_SIZE
    while size < len(gallery):
        planned = model_of(gallery[:size], size).plan(samples, max_error=max_error, encrypted_samples=1)
        if planned.item_count == 1:
            break
        size *= planned.item_count
    return size


def plan(gallery: Array, block_size: int, samples: Array, max_error: float) -> PlannedProgram:
    """The program of the whole gallery."""
    model = model_of(gallery, block_size)
    return model.plan(samples, max_error=max_error, encrypted_samples=len(samples))


class Ranking:
    """The best of a query's scores, kept up while they come block by block, in any order."""

    def __init__(self, count: int, block_size: int) -> None:
        self._count = count
        self._block_size = block_size
        self.indices: npt.NDArray[np.int64] = np.zeros(0, np.int64)
        """Rows of the gallery, the best first; of equal scores the lesser row."""
        self.scores: Array = np.zeros(0)

    def take(self, block: int, scores: Array) -> None:
        best = np.argpartition(-scores, min(self._count, len(scores)) - 1)[: self._count]
        indices = np.concatenate([self.indices, block * self._block_size + best])
        merged = np.concatenate([self.scores, scores[best]])
        order = np.lexsort((indices, -merged))[: self._count]
        self.indices, self.scores = indices[order], merged[order]


@dataclass
class Findings:
    """What ``Searcher`` found, a row or a number for each query, and what it cost."""

    best: npt.NDArray[np.int64]
    """Rows of the gallery by decrypted scores, [n, count]."""
    plain_best: npt.NDArray[np.int64]
    plain_scores: Array
    """Of ``plain_best``."""
    errors: Array
    """The largest of a query's scores."""
    first_seconds: Array
    """From a vector to the first block of its scores."""
    seconds: Array
    """From a vector to its nearest: encrypted, sent, evaluated, received, decrypted, ranked."""
    replay_seconds: Array
    """Of them, the evaluation at the daemon."""
    sent_bytes: int = 0
    received_bytes: int = 0
    square_error_sum: float = 0
    error_counts: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(_ERROR_BIN_COUNT, np.int64))
    """Of scores by how far they are off, in bins of equal width from -``max_error`` to ``max_error``."""


class Searcher:
    """Searches a gallery at a daemon with keys of its own, and compares each score with the plain product."""

    def __init__(self, session: cipherd.Session, gallery: Array, block_size: int, max_error: float) -> None:
        self._session = session
        self._gallery = gallery
        self._block_size = block_size
        self._blocks = {output.name: block for block, output in enumerate(session.program.outputs)}
        self._bins = np.linspace(-max_error, max_error, _ERROR_BIN_COUNT + 1)

    def search(self, queries: Array, count: int) -> Findings:
        """The ``count`` best for each query, one query at a time."""
        n = len(queries)
        indices = np.zeros((2, n, count), np.int64)
        numbers = np.zeros((4, n))
        findings = Findings(indices[0], indices[1], np.zeros((n, count)), *numbers)
        self._session.evaluate({"query": queries[:1]})  # the daemon's first is not like the others
        for k, query in enumerate(queries):
            ranking = Ranking(count, self._block_size)
            blocks: dict[int, Array] = {}
            start = time.monotonic()
            stream = self._session.stream(query)
            for part in stream:
                if not blocks:
                    findings.first_seconds[k] = time.monotonic() - start
                block = self._blocks[part.output]
                ranking.take(block, part.values)
                blocks[block] = part.values
            findings.seconds[k] = time.monotonic() - start
            findings.best[k] = ranking.indices
            (report,) = stream.requests
            findings.replay_seconds[k] = report.stage_seconds["replay"]
            findings.sent_bytes, findings.received_bytes = report.sent_bytes, report.received_bytes
            self._compare(findings, k, query, np.concatenate([blocks[block] for block in sorted(blocks)]))
        return findings

    def _compare(self, findings: Findings, k: int, query: Array, scores: Array) -> None:
        plain = self._gallery @ query
        ranking = Ranking(findings.best.shape[1], len(plain))
        ranking.take(0, plain)
        findings.plain_best[k], findings.plain_scores[k] = ranking.indices, ranking.scores
        errors = scores - plain
        findings.errors[k] = np.abs(errors).max()
        findings.square_error_sum += float(errors @ errors)
        findings.error_counts += np.histogram(errors, self._bins)[0]
