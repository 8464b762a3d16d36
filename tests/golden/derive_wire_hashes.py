#!/usr/bin/env python3
"""Derives the constants of wire_golden_test.cc from proto/WIRE_FORMAT.md alone.

A second implementation on purpose: no protobuf library, none of the project's code. Run it to see what a
change of the format does to every hash; a change needs a migration note in CHANGELOG.md.
"""
import hashlib
import struct

LOG_N = 4
N = 1 << LOG_N
Q = [97, 193, 257]
P = [353]
RESCALE_GROUPS = [1, 1]
DIGITS = [[0], [1], [2]]
GENERATOR = 5
DEFAULT_SCALE = 16.0


def u32(number):
    return struct.pack("<I", number)


def u64s(numbers):
    return struct.pack(f"<{len(numbers)}Q", *numbers)


def counted(numbers, pack):
    return u32(len(numbers)) + b"".join(pack(number) for number in numbers)


def canonical_context():
    tag = b"cipherd.ckks.context"
    return b"".join([
        u32(len(tag)), tag, u32(1), u32(LOG_N),
        counted(Q, lambda q: u64s([q])), counted(P, lambda p: u64s([p])),
        counted(RESCALE_GROUPS, u32), counted(DIGITS, lambda digit: counted(digit, u32)),
        u32(GENERATOR), struct.pack("<d", DEFAULT_SCALE), u32(0)
    ])


# ---- protobuf, by hand: fields in ascending order, proto3 defaults left out, numbers packed.
def varint(number):
    number &= (1 << 64) - 1
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value)


def blob(field, content):
    return varint(field << 3 | 2) + varint(len(content)) + content


def double(field, value):
    return varint(field << 3 | 1) + struct.pack("<d", value)


def packed(field, numbers):
    return blob(field, b"".join(varint(n) for n in numbers))


def tensor(shape, byte_count):
    return number(1, 5) + packed(2, shape) + number(3, 1) + number(4, byte_count)


def residues(count, primes, function):
    return u64s([function(i) % primes[i // N % len(primes)] for i in range(count)])


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def main():
    context = canonical_context()
    context_id = hashlib.sha256(context).digest()

    payload = residues(2 * 2 * N, Q[1:], lambda i: i * i + 7 * i)
    metadata = (number(1, 1) + double(2, 24.0) + blob(3, packed(1, [1, 2])) + number(4, 2) +
                number(5, 1) + number(6, 1))
    named = blob(1, b"data") + blob(2, tensor([2, 2, N], len(payload)))
    description = number(1, 1) + number(2, 1) + blob(3, context_id) + blob(4, metadata) + blob(5, named)

    # Relinearization, rotation by 1, conjugation: (type on the wire, step, payload).
    count = len(DIGITS) * 2 * (len(Q) + len(P)) * N
    keys = [(5, 0, residues(count, Q + P, lambda i: 3 * i + 1)),
            (6, 1, residues(count, Q + P, lambda i: 5 * i + 2)),
            (7, 0, residues(count, Q + P, lambda i: 7 * i + 3))]
    key_set = b"cipherd key set v1\0" + context_id + u32(len(keys))
    for wire_type, step, key_payload in sorted(keys):
        key_set += struct.pack("<Bq", wire_type, step) + hashlib.sha256(key_payload).digest()

    print("kContextBytes     ", len(context))
    print("kContextId        ", context_id.hex())
    print("kDescriptionSha256", sha256(description))
    print("kPayloadSha256    ", sha256(payload))
    print("kKeySetId         ", sha256(key_set))


if __name__ == "__main__":
    main()
