"""What peers do to a daemon. Each abuse is a function of a Scene, run in a process of its own until it is told to stop.

Rates are bounded: the abuser may share two cores with the daemon, and what is looked for is what the daemon makes of it. What
was achieved is counted.
"""

import contextlib
import dataclasses
import functools
import itertools
import os
import random
import resource
import ssl
import time
from typing import Callable

import peer as h2
from messages import Requests, framed
from peer import Peer, Target


class Scene:
    """What an abuse has: a target, requests, and when to stop."""

    def __init__(self, target: Target, requests: Requests, stop, counts):
        self.target = target
        self.requests = requests
        self._stop = stop
        # Shared with who watches: events, connections, connections that the daemon has refused or ended.
        self._counts = counts

    def is_over(self):
        return self._stop.is_set()

    def count(self, events):
        self._counts[0] += events

    def connect(self, greets=True, **arguments):
        """A connection, or None where the daemon gives none."""
        self._counts[1] += 1
        own_settings = arguments.pop("own_settings", None)
        acknowledge = arguments.pop("acknowledge", True)
        try:
            connection = Peer(self.target, **arguments)
            return connection.greet(own_settings, acknowledge) if greets else connection
        except OSError:
            self._counts[2] += 1
            return None

    def note_end(self):
        self._counts[2] += 1

    def ticks(self, rate, most=1000):
        """How many events are due, again and again, until the time is over: `rate` a second, caught up with no further
        than `most` at once."""
        start, done = time.monotonic(), 0
        while not self.is_over():
            due = int((time.monotonic() - start) * rate) - done
            if due > most:
                # Too slow, or held up by the daemon: what is lost is lost.
                done += due - most
                due = most
            if due > 0:
                done += due
                yield due
            time.sleep(0.01)

    def hold(self, connections):
        """Reads nothing and keeps what it has. In the end, counts what the daemon has ended."""
        while not self.is_over():
            time.sleep(0.05)
        for connection in connections:
            with contextlib.suppress(OSError):
                self._counts[2] += connection.receive().was_told_to_go
            connection.close()


def flood(scene, rate, make, per_connection=None, reads=True, start=None, most=1000):
    """make(peer, count) gives the bytes of so many events. A connection that the daemon ends is made anew."""
    connection, sent = None, 0
    for count in scene.ticks(rate, most):
        if connection is None:
            connection, sent = scene.connect(), 0
            if connection is None:
                continue
            if start:
                start(connection)
        try:
            connection.send(make(connection, count))
            if reads:
                connection.receive()
            scene.count(count)
            sent += count
        except OSError:
            connection.is_over = True
        if connection.is_over or (reads and connection.was_told_to_go):
            scene.note_end()
            connection.close()
            connection = None
        elif per_connection and sent >= per_connection:
            connection.close()
            connection = None


# Metadata.


def metadata_over_the_limit(scene):
    header_block = h2.block(h2.LIST_PROGRAMS, ("cipherd-padding", "x" * 60_000))
    flood(scene, 200, lambda peer, count: b"".join(
        h2.headers(peer.next_stream(), header_block, ends_stream=False) for _ in range(count)))


def metadata_under_the_limit(scene):
    header_block = h2.block(h2.LIST_PROGRAMS, ("cipherd-padding", "x" * 7_000))
    flood(scene, 500, lambda peer, count: b"".join(
        h2.headers(stream, header_block) + h2.data(stream, framed(b""), ends_stream=True)
        for stream in (peer.next_stream() for _ in range(count))))


def many_headers(scene):
    header_block = h2.block(h2.LIST_PROGRAMS, *((f"x{number}", "y") for number in range(1500)))
    flood(scene, 200, lambda peer, count: b"".join(
        h2.headers(peer.next_stream(), header_block) for _ in range(count)))


def headers_in_pieces(scene):
    """A header block without an end, over the limit, in pieces that the daemon reads one by one: gRPC 1.51 looks at its limit
    in each of them alone, and keeps them all until the connection ends (SECURITY.md)."""
    part = h2.continuation(1, h2.literals((f"x{number}", "y") for number in range(150)))
    flood(scene, 100, lambda peer, count: part, most=1,
          start=lambda peer: peer.send(h2.unfinished_headers(peer.next_stream(), h2.block(h2.LIST_PROGRAMS))))


def continuation_flood(scene):
    """A header block without an end."""
    part = h2.block(h2.LIST_PROGRAMS, ("x", "y" * 900))
    flood(scene, 5_000, lambda peer, count: h2.continuation(1, part) * count,
          start=lambda peer: peer.send(h2.unfinished_headers(peer.next_stream(), h2.block(h2.LIST_PROGRAMS))))


def empty_continuation_flood(scene):
    flood(scene, 20_000, lambda peer, count: h2.continuation(1, b"") * count,
          start=lambda peer: peer.send(h2.unfinished_headers(peer.next_stream(), h2.block(h2.LIST_PROGRAMS))))


# Streams.


def hold_streams(scene, paths, connections=8, streams=250):
    """Calls whose message never comes, of each of the paths in turn: as many as a connection may have."""
    held = [connection for connection in (scene.connect() for _ in range(connections)) if connection]
    for connection, path in zip(held, itertools.cycle(paths)):
        # So that the daemon's settings count.
        connection.receive(0.1)
        try:
            connection.send(b"".join(h2.headers(connection.next_stream(), h2.block(path)) for _ in range(streams)))
            scene.count(streams)
        except OSError:
            scene.note_end()
    scene.hold(held)


def many_streams(scene):
    hold_streams(scene, [h2.GET_PROGRAM, h2.LIST_PROGRAMS])


def many_evaluations(scene):
    """More than the daemon has places for."""
    hold_streams(scene, [h2.EVALUATE_STREAM, h2.EVALUATE, h2.PUT_KEYS, h2.MODEL_INFER])


def health_streams(scene):
    hold_streams(scene, [h2.HEALTH_CHECK, h2.HEALTH_WATCH])


def unknown_methods(scene):
    hold_streams(scene, ["/no.such.Service/Method"])


def streams_beyond_the_limit(scene):
    header_block = h2.block(h2.GET_PROGRAM)
    flood(scene, 2_000, lambda peer, count: b"".join(
        h2.headers(peer.next_stream(), header_block) for _ in range(count)),
          start=lambda peer: peer.receive(0.2))


def streams_without_settings(scene):
    """The daemon's bound of streams counts once its settings have been acknowledged: they never are."""
    header_block = h2.block(h2.GET_PROGRAM)
    held = []
    for _ in range(4):
        connection = scene.connect(acknowledge=False)
        if connection is None:
            continue
        held.append(connection)
        try:
            for _ in range(20):
                connection.send(b"".join(h2.headers(connection.next_stream(), header_block) for _ in range(100)))
                scene.count(100)
                time.sleep(0.01)
        except OSError:
            scene.note_end()
    scene.hold(held)


def reflection_streams(scene):
    """Each has a thread of the daemon's."""
    hold_streams(scene, [h2.REFLECTION], connections=4)


def rapid_resets(scene):
    """CVE-2023-44487: calls that are opened and reset at once."""
    header_block = h2.block(h2.EVALUATE_STREAM)

    def make(peer, count):
        streams = [peer.next_stream() for _ in range(count)]
        return b"".join(h2.headers(stream, header_block) + h2.reset(stream) for stream in streams)

    flood(scene, 3_000, make)


def rapid_resets_with_requests(scene):
    """The same with the whole request before the reset, which the daemon may begin to decode."""
    header_block = h2.block(h2.EVALUATE)
    message = framed(scene.requests.evaluate)[:8192]

    def make(peer, count):
        streams = [peer.next_stream() for _ in range(count)]
        # What is sent counts against the connection's window, which the daemon opens as it reads.
        return b"".join(h2.headers(stream, header_block) + h2.data(stream, message) + h2.reset(stream) for stream in streams)

    flood(scene, 300, make, per_connection=1000)


# Who does not read, and who does not write.


def slow_reads(scene):
    """Evaluations whose results there is no window for: 32 by one message, 32 by a stream, and a byte now and then."""
    held = []
    for path, messages in ((h2.EVALUATE, [scene.requests.evaluate]), (h2.EVALUATE_STREAM, scene.requests.stream)):
        for _ in range(4):
            connection = scene.connect(own_settings={h2.INITIAL_WINDOW: 0})
            if connection is None:
                continue
            held.append(connection)
            for _ in range(8):
                stream = connection.next_stream()
                connection.send(h2.headers(stream, h2.block(path)))
                # By and by, as the daemon's window lets.
                for message in messages:
                    connection.send(h2.data(stream, framed(message), ends_stream=message is messages[-1]))
                connection.receive(0.02)
                scene.count(1)
    keep_on(scene, held, 8, lambda stream: h2.window_update(stream, 1))


def unread_sockets(scene):
    """Answers that nobody takes from the socket."""
    held = [connection for connection in (scene.connect(receive_buffer=4096) for _ in range(16)) if connection]
    header_block = h2.block(h2.GET_PROGRAM)
    for connection in held:
        try:
            connection.socket.settimeout(1)
            for _ in range(1000):
                stream = connection.next_stream()
                connection.send(h2.headers(stream, header_block) +
                                h2.data(stream, framed(b"\n\x06square"), ends_stream=True))
                scene.count(1)
        except OSError:
            scene.note_end()
    scene.hold(held)


def begin_uploads(scene, kinds, connections):
    """Of each kind (path, beginning), 16 on each of the connections, by and by, as the daemon's window lets."""
    held = []
    for path, beginning in kinds:
        for _ in range(connections):
            connection = scene.connect()
            if connection is None:
                continue
            held.append(connection)
            for _ in range(16):
                stream = connection.next_stream()
                connection.send(h2.headers(stream, h2.block(path)) + h2.data(stream, beginning))
                connection.receive(0.01)
                scene.count(1)
    return held


def keep_on(scene, held, streams, part):
    """Sends `part`(stream) on each of the streams that every connection has, once a second."""
    while not scene.is_over():
        for connection in held:
            try:
                if not connection.is_over:
                    connection.send(b"".join(part(stream) for stream in range(1, 2 * streams, 2)))
                    connection.receive()
            except OSError:
                connection.is_over = True
        time.sleep(1)
    scene.hold(held)


def trickled_uploads(scene):
    """Keys, requests and messages of calls that only ask, each begun and continued by a byte a second."""
    held = begin_uploads(scene, (
        (h2.PUT_KEYS, b"".join(framed(message) for message in scene.requests.put_keys)),
        (h2.EVALUATE_STREAM, framed(scene.requests.stream[0]) + framed(scene.requests.stream[1])[:20_000]),
        (h2.EVALUATE, framed(scene.requests.evaluate)[:20_000]), (h2.GET_PROGRAM, framed(b"\n\x06square")[:6])), connections=1)
    keep_on(scene, held, 16, lambda stream: h2.data(stream, b"\0"))


def half_uploads(scene):
    """The same, and then silence."""
    scene.hold(begin_uploads(scene, (
        (h2.PUT_KEYS, b"".join(framed(message) for message in scene.requests.put_keys)),
        (h2.EVALUATE_STREAM, framed(scene.requests.stream[0])), (h2.MODEL_INFER, framed(b"x" * 60_000)[:30_000]),
        (h2.EVALUATE, framed(scene.requests.evaluate)[:40_000])), connections=4))


# Frames that cost the sender nothing.


def pings(scene):
    flood(scene, 20_000, lambda peer, count: b"".join(h2.ping(number) for number in range(count)))


def pings_among_calls(scene):
    """A call now and then, since what the daemon sends forgives pings."""
    header_block = h2.block(h2.LIST_PROGRAMS)

    def make(peer, count):
        stream = peer.next_stream()
        return (h2.headers(stream, header_block) + h2.data(stream, framed(b""), ends_stream=True) +
                b"".join(h2.ping(number) for number in range(count)))

    flood(scene, 10_000, make)


def pings_unread(scene):
    """Nobody reads the answers."""
    flood(scene, 50_000, lambda peer, count: b"".join(h2.ping(number) for number in range(count)), reads=False)


def settings_frames(scene):
    changes = [h2.settings({h2.HEADER_TABLE: size}) for size in (0, 4096)]
    flood(scene, 10_000, lambda peer, count: b"".join(itertools.islice(itertools.cycle(changes), count)))


def settings_unread(scene):
    change = h2.settings({h2.INITIAL_WINDOW: 1000})
    flood(scene, 10_000, lambda peer, count: change * count, reads=False)


def window_updates(scene):
    update = h2.window_update(0, 1)
    flood(scene, 20_000, lambda peer, count: update * count)


def empty_data(scene):
    frame = h2.data(1, b"")
    flood(scene, 20_000, lambda peer, count: frame * count,
          start=lambda peer: peer.send(h2.headers(peer.next_stream(), h2.block(h2.EVALUATE_STREAM))))


def priorities(scene):
    flood(scene, 20_000, lambda peer, count: b"".join(h2.priority(2 * number + 1, 0) for number in range(count)))


# Connections.


def churn(scene, rate=300, greets=True):
    """Connections that are made, greet, and go."""
    for count in scene.ticks(rate, most=rate // 10):
        for _ in range(count):
            connection = scene.connect(greets=greets)
            if connection:
                connection.close()
        scene.count(count)


def churn_without_preface(scene):
    churn(scene, greets=False)


def idle_connections(scene, number=1500, **arguments):
    """More than one peer may have."""
    held = []
    for count in scene.ticks(1_000, most=50):
        for _ in range(min(count, number)):
            connection = scene.connect(**arguments)
            if connection:
                held.append(connection)
            scene.count(1)
        number -= min(count, number)
        if number == 0:
            break
    scene.hold(held)


def silent_connections(scene):
    """That never send the preface."""
    idle_connections(scene, greets=False, shakes_hands=False)


def half_handshakes(scene):
    """A TLS handshake that is begun and not continued."""
    held = []
    for count in scene.ticks(300, most=50):
        for _ in range(min(count, 600 - len(held))):
            connection = scene.connect(greets=False, shakes_hands=False)
            if connection is None:
                continue
            try:
                connection.send(_client_hello())
                held.append(connection)
            except OSError:
                scene.note_end()
            scene.count(1)
        if len(held) == 600:
            break
    scene.hold(held)


def handshakes(scene):
    """Whole ones, which cost the daemon a signature each, and then nothing."""
    churn(scene, rate=50)


@functools.cache
def _client_hello():
    out = ssl.MemoryBIO()
    handshake = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), out, server_hostname="cipherd")
    try:
        handshake.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return out.read()


def garbage(scene):
    """What is no HTTP/2: noise, HTTP/1.1, a TLS handshake, and frames that are none after a good preface."""
    noise = random.Random(5)
    for count in scene.ticks(200, most=20):
        for number in range(count):
            connection = scene.connect(greets=False, shakes_hands=False)
            if connection is None:
                continue
            content = (noise.randbytes(4096), b"GET / HTTP/1.1\r\nHost: cipherd\r\n\r\n", _client_hello(),
                       h2.PREFACE + h2.settings() + noise.randbytes(4096))[number % 4]
            try:
                connection.send(content)
                connection.receive()
            except OSError:
                pass
            connection.close()
        scene.count(count)


@dataclasses.dataclass(frozen=True)
class Abuse:
    run: Callable[[Scene], None]
    # What is counted.
    unit: str
    # What the abuser does not let go of by itself, the daemon takes from it while it is still there: calls with all that
    # they hold; the connections themselves.
    is_let_go: bool = False
    ends: bool = False
    # Against a daemon with TLS, whose tenants have certificates and quotas; else against one that has neither.
    tls: bool = False

    @property
    def name(self):
        return self.run.__name__


ABUSES = [
    Abuse(metadata_over_the_limit, "calls"), Abuse(metadata_under_the_limit, "calls"), Abuse(many_headers, "calls"),
    Abuse(headers_in_pieces, "frames"),
    Abuse(continuation_flood, "frames"), Abuse(empty_continuation_flood, "frames"),
    Abuse(many_streams, "calls", is_let_go=True), Abuse(many_evaluations, "calls", is_let_go=True),
    Abuse(health_streams, "calls", is_let_go=True), Abuse(unknown_methods, "calls", is_let_go=True),
    Abuse(streams_beyond_the_limit, "calls"),
    Abuse(streams_without_settings, "calls", is_let_go=True), Abuse(reflection_streams, "calls"),
    Abuse(rapid_resets, "calls"), Abuse(rapid_resets_with_requests, "calls"),
    Abuse(unread_sockets, "calls"),
    Abuse(pings, "frames"), Abuse(pings_among_calls, "frames"), Abuse(pings_unread, "frames"),
    Abuse(settings_frames, "frames"), Abuse(settings_unread, "frames"), Abuse(window_updates, "frames"),
    Abuse(empty_data, "frames"), Abuse(priorities, "frames"),
    Abuse(churn, "connections"), Abuse(churn_without_preface, "connections"), Abuse(idle_connections, "connections"),
    Abuse(silent_connections, "connections", ends=True), Abuse(garbage, "connections"),
    # Requests that are begun hold a program's places, which are few: what keeps one tenant from all of them is its quota.
    Abuse(slow_reads, "calls", is_let_go=True, tls=True), Abuse(trickled_uploads, "calls", is_let_go=True, tls=True),
    Abuse(half_uploads, "calls", is_let_go=True, tls=True),
    Abuse(half_handshakes, "connections", ends=True, tls=True), Abuse(handshakes, "connections", tls=True),
]


def run(abuse_name, target, requests, stop, counts):
    """In a process of its own, behind everybody else who wants the processor."""
    os.nice(10)
    _, most_files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, most_files))
    (abuse,) = (abuse for abuse in ABUSES if abuse.name == abuse_name)
    abuse.run(Scene(target, requests, stop, counts))
