"""Debian's HAProxy with deploy/gateway/haproxy.cfg: the file as it is shipped, but for addresses and paths."""

import contextlib
import http.client
import os
import re
import socket

from processes import DEPLOY, PATIENCE_SECONDS, Served, wait_until

# Debian's is where users do not look.
_BINARY = next((path for path in ("/usr/sbin/haproxy", "/usr/local/sbin/haproxy") if os.path.exists(path)), "haproxy")

# Says by which replica it was answered, whatever the answer, and speaks what Python speaks.
_PROBE = """
frontend probe
    bind unix@{socket}
    http-response set-header x-replica %s
    default_backend replicas
"""


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=PATIENCE_SECONDS)
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def replace_once(pattern, replacement, text):
    text, count = re.subn(pattern, lambda match: replacement, text)
    assert count == 1, f"{count} places for {pattern}"
    return text


class Gateway(Served):
    """Before replicas at the places of the shipped file; a place that nobody has been given to has nobody."""

    def __init__(self, directory, connection, files):
        """`files`: of server.pem, clients.pem, client.pem and replicas.pem."""
        os.makedirs(directory)
        with open(os.path.join(DEPLOY, "gateway", "haproxy.cfg")) as file:
            config = file.read()
        for name, path in files.items():
            config = replace_once(re.escape(f"/etc/cipherd/gateway/{name}"), path, config)
        self._admin = os.path.join(directory, "admin")
        self._probe = os.path.join(directory, "probe")
        config = replace_once(re.escape("/run/haproxy/cipherd.sock"), self._admin, config)
        self.places = re.findall(r"^    server (\S+) ", config, re.MULTILINE)
        # Nobody answers at port 1 of loopback.
        config, count = re.subn(r"(?m)^(    server \S+) \S+", r"\1 127.0.0.1:1", config)
        assert count == len(self.places) > 0
        with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as listener:
            # No port of its own choice: this one is taken until HAProxy has it.
            config = replace_once(r"bind 127\.0\.0\.1:7480", f"bind fd@{listener.fileno()}", config)
            config += _PROBE.format(socket=self._probe)
            path = os.path.join(directory, "haproxy.cfg")
            with open(path, "w") as file:
                file.write(config)
            super().__init__(directory, [_BINARY, "-f", path], pass_fds=[listener.fileno()])
            self.address = "127.0.0.1:%d" % listener.getsockname()[1]
            self.connection = connection
            wait_until(self._is_there, self.log)

    def _is_there(self):
        if self.process.poll() is not None:
            raise RuntimeError("HAProxy has ended: " + self.log())
        return os.path.exists(self._probe) and os.path.exists(self._admin)

    def _command(self, text):
        with contextlib.closing(socket.socket(socket.AF_UNIX)) as admin:
            admin.connect(self._admin)
            admin.sendall(text.encode() + b"\n")
            return b"".join(iter(lambda: admin.recv(1 << 16), b"")).decode()

    def set_address(self, place, address):
        """The runtime's command: who has it is asked for its health from now on."""
        host, port = address.split(":")
        answer = self._command(f"set server replicas/{place} addr {host} port {port}")
        assert "changed" in answer, answer

    def serving(self):
        """Places whose replica is in the circle."""
        _, header, *lines = self._command("show servers state replicas").strip().splitlines()
        names = header.removeprefix("# ").split()
        rows = [dict(zip(names, line.split())) for line in lines]
        return {row["srv_name"] for row in rows if row["srv_op_state"] == "2"}

    def await_serving(self, places):
        wait_until(lambda: self.serving() == set(places), lambda: f"expected {places}, serving {self.serving()}")

    def routes(self, key_sets):
        """The place that each is sent to."""
        routes = {}
        with contextlib.closing(_UnixConnection(self._probe)) as connection:
            for key_set in key_sets:
                connection.request("POST", "/grpc.health.v1.Health/Check", body=bytes(5), headers={
                    "content-type": "application/grpc", "te": "trailers", "cipherd-key-set": key_set})
                with connection.getresponse() as answer:
                    answer.read()
                    routes[key_set] = answer.headers["x-replica"]
        return routes
