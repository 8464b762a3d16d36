"""What deployments tell the daemon, as it would read it."""

import os
import re
import subprocess
import tempfile

SOURCE = os.environ["CIPHERD_SOURCE_DIR"]
BINARY = os.environ["CIPHERD_BINARY"]
UNITS = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "g": 1 << 30}
# From the daemon's source: what it gives connections after the drain, and the port of health after that.
SECONDS_AFTER_DRAIN = 6


def deploy(*names):
    return os.path.join(SOURCE, "deploy", *names)


def known_flags():
    text = subprocess.run([BINARY, "--help"], check=True, capture_output=True, text=True).stdout
    return set(re.findall(r"^\s+(?:-\w,)?(--[a-z-]+)", text, re.MULTILINE))


def project_version():
    return subprocess.run([deploy("image", "version")], check=True, capture_output=True, text=True).stdout.strip()


def parse_flags(arguments):
    """["--a=1", "--b"] as {"a": "1", "b": True}. A flag that is there twice is a mistake, as to the daemon."""
    flags = {}
    for argument in arguments:
        match = re.fullmatch(r"--([a-z-]+)(?:=(\S+))?", argument)
        if match is None:
            raise ValueError(f"expected --flag or --flag=value, got {argument!r}")
        name, value = match.groups()
        if name in flags:
            raise ValueError(f"--{name} is there twice")
        flags[name] = True if value is None else value
    return flags


def image_config():
    """The config file of the image, in the same form."""
    flags = {}
    with open(deploy("image", "cipherd.conf")) as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                name, value = re.fullmatch(r'([a-z-]+) = "?([^"]*?)"?', line.strip()).groups()
                flags[name] = value
    return flags


def parse_bytes(text):
    number, unit = re.fullmatch(r"(\d+)([A-Za-z]*)", str(text)).groups()
    return int(number) * UNITS[unit]


def host_budget_bytes(flags, device_is_host):
    """What the daemon may take of the machine's memory by its budgets, all of which have to be stated."""
    names = ["pinned-memory", "transport-memory", "infer-memory"]
    if device_is_host:
        names.append("device-memory")
    return sum(parse_bytes(flags[name]) for name in names)


def start_arguments(flags):
    """The other way round."""
    return [f"--{name}" if value is True else f"--{name}={value}" for name, value in flags.items()]


def default_of(flag):
    text = subprocess.run([BINARY, "--help"], check=True, capture_output=True, text=True).stdout
    return re.search(rf"^\s+{flag} \S+=(\S+)", text, re.MULTILINE).group(1)


def temporary_directory():
    return tempfile.TemporaryDirectory(prefix="cipherd_deploy_")
