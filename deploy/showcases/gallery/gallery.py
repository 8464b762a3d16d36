"""Finds the nearest of 100,000 vectors to queries that the daemon cannot read."""

import pathlib
import sys
import tempfile
import time

import cipherd
import embedding
import numpy as np
from search import Findings, Searcher, choose_block_size, plan
from showcase import arguments, report
from showcase.daemon import Daemon

# What scores are to keep, which are cosines.
MAX_ERROR = 1e-6
# Test images, the last ones, that magnitudes and errors are measured with when the program is planned.
SAMPLE_COUNT = 16
BEST_COUNT = 10


def write_serving(directory: pathlib.Path, constant_bytes: int) -> None:
    """Has the daemon hold so many bytes of the program's constants on its device, and stream them where they are
    more."""
    (directory / "serving.textproto").write_text(f"constant_memory_bytes: {constant_bytes}\n")


def bars_of(findings: Findings, labels: np.ndarray, truth: np.ndarray, vector_count: int) -> list[report.Bar]:
    count = len(truth)
    different = findings.best[:, 0] != findings.plain_best[:, 0]
    margins = findings.plain_scores[:, 0] - findings.plain_scores[:, 1]
    near = (margins <= 2 * MAX_ERROR).sum()
    accuracies = [float((labels[one[:, 0]] == truth).mean()) for one in (findings.best, findings.plain_best)]
    return [
        report.Bar(
            f"every score of {count} x {vector_count} agrees with float64 within {MAX_ERROR:.0e}",
            f"errors up to {findings.errors.max():.1e}",
            bool((findings.errors <= MAX_ERROR).all()),
        ),
        report.Bar(
            "recall@1 equal: the nearest is the nearest of float64, for every query",
            f"{different.sum()} differ; {near} are decided by less than {2 * MAX_ERROR:.0e}, the narrowest by"
            f" {margins.min():.1e}",
            not different.any(),
        ),
        report.Bar(
            "accuracy of the nearest's label equal",
            f"{accuracies[0]:.3f}, plain {accuracies[1]:.3f}",
            accuracies[0] == accuracies[1],
        ),
    ]


def main() -> int:
    parser = arguments.parser(__doc__)
    parser.add_argument("--vectors", type=int, default=embedding.MOST_VECTORS, help="of the gallery (default: 100000)")
    parser.add_argument("--queries", type=int, default=1000, help="test images, 1 to 9984 (default: 1000)")
    parser.add_argument(
        "--constant-memory",
        type=int,
        metavar="MIB",
        help="of the device, that the gallery is streamed through in two tiles; 0: all of it stays on the device"
        " (default: twice what a block takes)",
    )
    options = parser.parse_args()
    if not BEST_COUNT <= options.vectors <= embedding.MOST_VECTORS:
        parser.error(f"--vectors: expected {BEST_COUNT} to {embedding.MOST_VECTORS}")
    if not 1 <= options.queries <= embedding.MOST_QUERIES - SAMPLE_COUNT:
        parser.error(f"--queries: expected 1 to {embedding.MOST_QUERIES - SAMPLE_COUNT}")

    gallery, tests = embedding.load()
    vectors, labels = gallery.rows[: options.vectors], gallery.labels[: options.vectors]
    queries, truth = tests.rows[: options.queries], tests.labels[: options.queries]
    samples = tests.rows[-SAMPLE_COUNT:]

    with tempfile.TemporaryDirectory(prefix="cipherd-gallery.") as directory:
        served = pathlib.Path(directory) / "programs"
        served.mkdir()
        print(f"== planning a program of {len(vectors)} vectors", flush=True)
        start = time.monotonic()
        block_size = choose_block_size(vectors, samples, MAX_ERROR)
        planned = plan(vectors, block_size, samples, MAX_ERROR)
        plan_seconds = time.monotonic() - start
        planned.write(served / planned.name)
        two_tiles = 2 * planned.largest_constant_bytes
        constant_memory = two_tiles if options.constant_memory is None else options.constant_memory << 20
        if 0 < constant_memory < min(two_tiles, planned.constant_bytes):
            parser.error(f"--constant-memory: expected 0, or at least {two_tiles >> 20} for blocks of {block_size}")
        if constant_memory:
            write_serving(served / planned.name, constant_memory)
        with (
            Daemon(served, device=options.device) as daemon,
            cipherd.connect(daemon.target) as client,
            client.session(planned.name) as session,
        ):
            print(f"== searching for {len(queries)} encrypted queries", flush=True)
            start = time.monotonic()
            session.upload_keys()
            key_seconds = time.monotonic() - start
            findings = Searcher(session, vectors, block_size, MAX_ERROR).search(queries, BEST_COUNT)
            ring_degree = session.program.ring_degree

    def accuracy(best: np.ndarray) -> str:
        return f"{(labels[best[:, 0]] == truth).mean():.3f}"

    shared = np.mean([len(np.intersect1d(*both)) for both in zip(findings.best, findings.plain_best)]) / BEST_COUNT
    mean_square = findings.square_error_sum / (len(queries) * len(vectors))
    print()
    report.print_table(
        ["plain", "encrypted"],
        [
            ("accuracy of the nearest's label", accuracy(findings.plain_best), accuracy(findings.best)),
            ("recall@1 of plain", "", f"{(findings.best[:, 0] == findings.plain_best[:, 0]).mean():.3f}"),
            (f"recall@{BEST_COUNT} of plain", "", f"{shared:.4f}"),
            ("largest error of a score", "", f"{findings.errors.max():.1e}"),
            ("root mean square error", "", f"{np.sqrt(mean_square):.1e}"),
        ],
    )
    streams = 0 < constant_memory < planned.constant_bytes
    block_count = -(-len(vectors) // block_size)
    milliseconds = findings.seconds * 1e3
    rows = [
        ("blocks of vectors", f"{block_count} of {block_size}, N = {ring_degree}"),
        ("first scores of a query, p50", f"{np.percentile(findings.first_seconds, 50) * 1e3:.0f} ms"),
        ("latency of a query, p50", f"{np.percentile(milliseconds, 50):.0f} ms"),
        ("latency of a query, p99", f"{np.percentile(milliseconds, 99):.0f} ms"),
        ("of it the evaluation, p50", f"{np.percentile(findings.replay_seconds, 50) * 1e3:.0f} ms"),
        ("up, a query", report.format_bytes(findings.sent_bytes)),
        ("down, a query", report.format_bytes(findings.received_bytes)),
        ("keys, once", f"{report.format_bytes(planned.key_bytes)} in {key_seconds:.1f} s"),
        ("constants", report.format_bytes(planned.constant_bytes)),
        ("of them on the device", report.format_bytes(constant_memory if streams else planned.constant_bytes)),
        ("planning", f"{plan_seconds:.1f} s"),
    ]
    print()
    report.print_table(["constants streamed" if streams else "constants resident"], rows)
    print()
    holds = report.print_bars(bars_of(findings, labels, truth, len(vectors)))
    if options.picture:
        import picture

        picture.draw(options.picture, findings, truth, MAX_ERROR)
        print(f"wrote {options.picture}")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
