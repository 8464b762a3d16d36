"""Command lines of the showcases."""

import argparse
import pathlib
import signal
import sys


def parser(description: str) -> argparse.ArgumentParser:
    """With what every showcase takes. From here on SIGTERM, like SIGINT, leaves blocks: nothing is left running."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    made = argparse.ArgumentParser(
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="--build DIR takes the binaries of a build in place of building. Exits 0 exactly where every bar holds.",
    )
    made.add_argument("--device", default="cpu", help="of the daemon: cpu, cuda:0 or auto (default: cpu)")
    made.add_argument("--picture", type=pathlib.Path, help="PNG or SVG to write (default: none)")
    return made


def add_in_flight(parser: argparse.ArgumentParser) -> None:
    """For showcases that measure throughput."""
    parser.add_argument("--in-flight", type=int, default=2, help="requests at a time (default: 2)")
