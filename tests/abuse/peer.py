"""HTTP/2 of a peer that does not behave: frames as they are wanted, in whatever order, and nobody who answers for it.

    peer = Peer(target)
    peer.greet()
    peer.send(peer.headers(1, EVALUATE), data(1, framed(message)))
"""

import collections
import dataclasses
import functools
import select
import socket
import ssl
import struct
import time

import hpack
from hyperframe.frame import (ContinuationFrame, DataFrame, Frame, GoAwayFrame, HeadersFrame, PingFrame, PriorityFrame,
                              RstStreamFrame, SettingsFrame, WindowUpdateFrame)

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_SERVICE = "/cipherd.v1.EvaluationService/"
EVALUATE, EVALUATE_STREAM, PUT_KEYS, GET_PROGRAM, LIST_PROGRAMS = (
    _SERVICE + name for name in ("Evaluate", "EvaluateStream", "PutKeys", "GetProgram", "ListPrograms"))
MODEL_INFER = "/inference.GRPCInferenceService/ModelInfer"
HEALTH_CHECK, HEALTH_WATCH = "/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch"
REFLECTION = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"

# Linux's; Python 3.11 has no name for it.
_BIND_ADDRESS_NO_PORT = 24
# Frames as large as every peer must take them.
MAX_FRAME = 16384


@dataclasses.dataclass(frozen=True)
class Target:
    """A daemon's address, and how to get there: from an address of this machine, plain, or by TLS that trusts `ca` and shows a
    certificate."""

    host: str
    port: int
    source: str = ""
    ca: str = ""
    certificate: str = ""
    key: str = ""
    server_name: str = "cipherd"


def literals(named):
    """A part of a header block that is the same on any stream of any connection."""
    return hpack.Encoder().encode([(name, value, True) for name, value in named], huffman=False)


def block(path, *more):
    """The header block of a call, of literals."""
    return literals([(":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "cipherd"),
                     ("content-type", "application/grpc"), ("te", "trailers"), *more])


def headers(stream, header_block, ends_stream=False):
    """HEADERS, and CONTINUATION where one frame does not hold it."""
    parts = [header_block[at:at + MAX_FRAME] for at in range(0, len(header_block), MAX_FRAME)] or [b""]
    frames = [HeadersFrame(stream, parts[0]), *(ContinuationFrame(stream, part) for part in parts[1:])]
    if ends_stream:
        frames[0].flags.add("END_STREAM")
    frames[-1].flags.add("END_HEADERS")
    return b"".join(frame.serialize() for frame in frames)


def unfinished_headers(stream, header_block):
    return HeadersFrame(stream, header_block).serialize()


def continuation(stream, part):
    return ContinuationFrame(stream, part).serialize()


def data(stream, content, ends_stream=False):
    out = b""
    parts = [content[at:at + MAX_FRAME] for at in range(0, len(content), MAX_FRAME)] or [b""]
    for part in parts:
        frame = DataFrame(stream, part)
        if ends_stream and part is parts[-1]:
            frame.flags.add("END_STREAM")
        out += frame.serialize()
    return out


def reset(stream):
    return RstStreamFrame(stream, error_code=8).serialize()


def ping(number):
    return PingFrame(0, struct.pack(">Q", number)).serialize()


def settings(values=None, ack=False):
    frame = SettingsFrame(0, settings=values or {})
    if ack:
        frame.flags.add("ACK")
    return frame.serialize()


def window_update(stream, increment):
    return WindowUpdateFrame(stream, window_increment=increment).serialize()


def priority(stream, depends_on):
    return PriorityFrame(stream, depends_on=depends_on, stream_weight=7).serialize()


INITIAL_WINDOW = SettingsFrame.INITIAL_WINDOW_SIZE
HEADER_TABLE = SettingsFrame.HEADER_TABLE_SIZE


@functools.cache
def _tls(ca, certificate, key):
    context = ssl.create_default_context(cafile=ca)
    context.load_cert_chain(certificate, key)
    context.set_alpn_protocols(["h2"])
    return context


class Peer:
    """One connection. Reads only when it is told to, and counts the frames that came by their type."""

    def __init__(self, target, timeout=10, receive_buffer=None, shakes_hands=True):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(timeout)
        if target.source:
            # The port is chosen when it is known where to: there are as many for each place.
            self.socket.setsockopt(socket.IPPROTO_IP, _BIND_ADDRESS_NO_PORT, 1)
            self.socket.bind((target.source, 0))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.connect((target.host, target.port))
        if target.ca and shakes_hands:
            self.socket = _tls(target.ca, target.certificate, target.key).wrap_socket(self.socket, server_hostname=target.server_name)
        self.came = collections.Counter()
        # Payload of DATA that came.
        self.data_bytes = 0
        self._rest = b""
        self._next_stream = 1
        self.is_over = False

    def greet(self, own_settings=None, acknowledge=True):
        self.send(PREFACE, settings(own_settings), settings(ack=True) if acknowledge else b"")
        return self

    def next_stream(self):
        stream, self._next_stream = self._next_stream, self._next_stream + 2
        return stream

    def send(self, *parts):
        self.socket.sendall(b"".join(parts))

    def receive(self, seconds=0.0):
        """What has come, and comes within the time. `is_over` once the daemon has ended the connection."""
        end = time.monotonic() + seconds
        while not self.is_over:
            left = max(0.0, end - time.monotonic())
            # No select: there may be more files than it takes.
            poll = select.poll()
            poll.register(self.socket, select.POLLIN)
            if not getattr(self.socket, "pending", lambda: 0)() and not poll.poll(left * 1000):
                return self
            try:
                got = self.socket.recv(1 << 16)
            except (ConnectionError, ssl.SSLError, TimeoutError):
                got = b""
            self.is_over = not got
            self._count(got)
        return self

    def _count(self, got):
        self._rest += got
        while len(self._rest) >= 9:
            frame, length = Frame.parse_frame_header(memoryview(self._rest)[:9])
            if len(self._rest) < 9 + length:
                return
            self.came[type(frame)] += 1
            if isinstance(frame, DataFrame):
                self.data_bytes += length
            self._rest = self._rest[9 + length:]

    @property
    def was_told_to_go(self):
        return self.is_over or self.came[GoAwayFrame] > 0

    def close(self):
        self.socket.close()
