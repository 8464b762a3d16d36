"""Tables, and the bars that a showcase must hold."""

from dataclasses import dataclass

from showcase.measurement import Measurement


@dataclass(frozen=True)
class Bar:
    """Something that must hold, with what was measured of it."""

    text: str
    measured: str
    holds: bool


def print_table(columns: list[str], rows: list[tuple[str, ...]]) -> None:
    """Names of rows on the left, a column for each of ``columns``."""
    table = [("", *columns), *rows]
    widths = [max(len(row[k]) for row in table) for k in range(len(columns) + 1)]
    for row in table:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:]))]
        print("  ".join(cells).rstrip())


def cost_rows(items: str, measured: list[Measurement]) -> list[tuple[str, ...]]:
    """What evaluations cost, a column for each program. ``items`` is the plural of what is evaluated."""

    def row(name: str, *cells: str) -> tuple[str, ...]:
        return (name, *cells)

    return [
        row(f"{items} in a ciphertext", *(f"{one.items_per_request}, N = {one.ring_degree}" for one in measured)),
        row("ciphertexts sent", *(f"{one.request_count}" for one in measured)),
        row("evaluation, ms a ciphertext", *(f"{one.evaluation_seconds * 1e3:.2f}" for one in measured)),
        row("round trip, ms a ciphertext", *(f"{one.round_trip_seconds * 1e3:.2f}" for one in measured)),
        row(f"{items} a second, all steps", *(f"{one.items_per_second:.0f}" for one in measured)),
        row("up, a ciphertext", *(format_bytes(one.sent_bytes) for one in measured)),
        row("down, a ciphertext", *(format_bytes(one.received_bytes) for one in measured)),
        row("keys, once", *(f"{format_bytes(one.key_bytes)} in {one.key_seconds:.1f} s" for one in measured)),
    ]


def print_bars(bars: list[Bar]) -> bool:
    """Prints each, and returns whether all hold."""
    for bar in bars:
        print(f"{'holds' if bar.holds else 'FAILS'}  {bar.text}: {bar.measured}")
    return all(bar.holds for bar in bars)


def format_bytes(count: int) -> str:
    """In KiB or MiB."""
    return f"{count / 2**20:.1f} MiB" if count >= 2**20 else f"{count / 2**10:.1f} KiB"
