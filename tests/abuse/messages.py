"""Requests to a daemon as bytes, made of cipherctl's files (client/files/FILES.md), without code that protoc writes."""

import dataclasses
import os
import struct

from processes import cipherctl

_VARINT, _BYTES = 0, 2


def _varint(value):
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def field(number, value):
    """One field of a protobuf message: bytes (also of a message), text, or a number."""
    if isinstance(value, int):
        return _varint(number << 3 | _VARINT) + _varint(value)
    if isinstance(value, str):
        value = value.encode()
    return _varint(number << 3 | _BYTES) + _varint(len(value)) + value


def fields(message):
    """Field number to its last value, of a message that has numbers and bytes only."""

    def read_varint(at):
        value = shift = 0
        while True:
            byte = message[at]
            value |= (byte & 0x7F) << shift
            at, shift = at + 1, shift + 7
            if byte < 0x80:
                return value, at

    result, at = {}, 0
    while at < len(message):
        key, at = read_varint(at)
        value, at = read_varint(at)
        if key & 7 == _BYTES:
            value, at = message[at:at + value], at + value
        elif key & 7 != _VARINT:
            raise ValueError(f"wire type {key & 7} in field {key >> 3}")
        result[key >> 3] = value
    return result


def _read_file(path, content):
    """The head, field `content` of FileHeader, and what follows it."""
    with open(path, "rb") as file:
        data = file.read()
    (length,) = struct.unpack_from("<I", data, 8)
    return fields(fields(data[12:12 + length])[content]), data[12 + length:-32]


@dataclasses.dataclass
class Requests:
    """Of one tenant, for one program."""

    # EvaluateRequest, and the payload that its answer must have.
    evaluate: bytes
    expected_payload: bytes
    # The same as messages of EvaluateStream.
    stream: list
    # Of PutKeys: header, first key, and the first of its chunks, half of the key's bytes. No upload is like another.
    put_keys: list
    # Bytes of the whole set.
    key_bytes: int

    @classmethod
    def make(cls, daemon, directory, program="square"):
        """Has cipherctl make keys and upload them, encrypt and evaluate, with files in a new directory. `daemon`:
        processes.Daemon."""
        os.makedirs(directory)

        def path(name):
            return os.path.join(directory, name)

        keys = path("keys")
        with open(path("x.csv"), "w") as file:
            file.write("\n".join(",".join(f"{(item * 31 + slot) % 17 / 17:.4f}" for slot in range(1024)) for item in range(2)))
        daemon.ctl("keygen", "--program", program, "--keys", keys)
        daemon.ctl("put-keys", "--keys", keys)
        cipherctl("encrypt", "--keys", keys, "--input", "x=" + path("x.csv"), "--output", path("in.ct"))
        daemon.ctl("evaluate", "--keys", keys, "--input", path("in.ct"), "--output", path("out.ct"))
        with open(os.path.join(keys, "key_set_id")) as file:
            key_set_id = bytes.fromhex(file.read().strip())
        inputs, payload = _read_file(path("in.ct"), 3)
        _, expected = _read_file(path("out.ct"), 3)
        header = field(1, program) + field(2, key_set_id) + field(4, inputs[3])
        key_set, rest = _read_file(os.path.join(keys, "evaluation.keys"), 2)
        (length,) = struct.unpack_from("<I", rest)
        key, half = rest[4:4 + length], rest[4 + length:4 + length + (key_set[3] // key_set[2] // 2)]
        set_header = field(1, key_set[1]) + field(2, key_set[2]) + field(3, key_set[3])
        return cls(
            evaluate=field(1, header) + field(2, payload), expected_payload=expected,
            stream=[field(1, header), field(2, payload)],
            put_keys=[field(1, set_header), field(2, key), field(3, half)], key_bytes=key_set[3])

    def is_right(self, answer):
        """Whether an EvaluateResponse is what it must be."""
        return fields(answer).get(2) == self.expected_payload


def framed(message):
    """As gRPC has a message in its stream: uncompressed, with its length."""
    return b"\0" + struct.pack(">I", len(message)) + message
