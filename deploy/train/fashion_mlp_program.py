"""The multilayer perceptron 784 -> 64 -> 10 with square activation as an encrypted program.

Packing. S = 8192 = 8 * 1024 slots; pixel j of image k is in slot 8j + k. A ciphertext carries
eight images, and a rotation by 8t moves every image by t positions around a cycle of 1024.

Layer 1. The 64 x 784 matrix is walked along 64 diagonals, extended over all 1024 positions:
    d_t[j] = W1[j mod 64][(j + t) mod 1024]  (0 beyond pixel 783),  t in 0..63.
So position j sums pixels j .. j + 63 for hidden unit j mod 64, and adding the 16 blocks of 64
positions by four rotations leaves hidden unit i at every position that is i mod 64.

Layer 2. Ten outputs are padded to 16, and the hidden units have period 64:
    d_t[j] = W2[j mod 16][(j + t) mod 64],  t in 0..15,
then two rotations add the four blocks of 16. Logit o of image k is in slot 8o + k.

Both layers take baby steps of 1..7 positions and giant steps of multiples of 8, and every step of
layer 2 is one of layer 1: 18 rotation keys in all.
"""

import math

import numpy as np

import ntt_primes

ITEM_COUNT = 8
POSITION_COUNT = 1024
PIXEL_COUNT = 784
HIDDEN_COUNT = 64
LOGIT_COUNT = 10
PADDED_LOGIT_COUNT = 16
BABY_COUNT = 8

LOG_N = 14
SCALE_BITS = 42
# Every prime is below 2^50. 50 bits of base leave 2^49 / 2^42 = 128 for the magnitude of a logit.
BASE_BITS = 50
P_BITS = 50
DEPTH = 3

assert ITEM_COUNT * POSITION_COUNT == 1 << (LOG_N - 1)


def constants(w1, b1, w2, b2):
    """Returns the arrays that the program computes with, from float32 weights."""
    position = np.arange(POSITION_COUNT)
    wide_w1 = np.zeros((HIDDEN_COUNT, POSITION_COUNT), np.float32)
    wide_w1[:, :PIXEL_COUNT] = w1
    shift = np.arange(HIDDEN_COUNT)[:, None]
    layer1 = wide_w1[position % HIDDEN_COUNT, (position + shift) % POSITION_COUNT]

    tall_w2 = np.zeros((PADDED_LOGIT_COUNT, HIDDEN_COUNT), np.float32)
    tall_w2[:LOGIT_COUNT] = w2
    position = np.arange(HIDDEN_COUNT)
    shift = np.arange(PADDED_LOGIT_COUNT)[:, None]
    layer2 = tall_w2[position % PADDED_LOGIT_COUNT, (position + shift) % HIDDEN_COUNT]

    bias2 = np.zeros(PADDED_LOGIT_COUNT, np.float32)
    bias2[:LOGIT_COUNT] = b2
    return {
        "layer1.diagonals": layer1,
        "layer1.offsets": ITEM_COUNT * np.arange(HIDDEN_COUNT, dtype=np.int64),
        "layer1.bias": b1,
        "layer2.diagonals": layer2,
        "layer2.offsets": ITEM_COUNT * np.arange(PADDED_LOGIT_COUNT, dtype=np.int64),
        "layer2.bias": bias2,
    }


def _context():
    taken = set()
    p = ntt_primes.take(ntt_primes.below(LOG_N, P_BITS), 2, taken)
    base = ntt_primes.take(ntt_primes.below(LOG_N, BASE_BITS), 1, taken)
    q = ntt_primes.take(ntt_primes.around(LOG_N, SCALE_BITS), DEPTH, taken) + base
    log_qp = sum(math.log2(prime) for prime in q + p)
    return f"""context {{
  log_n: {LOG_N}
  # log2(QP) = {log_qp:.1f}; the bound for 128-bit security at this ring degree is 430.
  q_primes: {q}
  p_primes: {p}
  rescale_groups: {[1] * DEPTH}
  digits {{ prime_ids: [0, 1] }}
  digits {{ prime_ids: [2, 3] }}
  galois_generator: 5
  default_scale: {float(1 << SCALE_BITS)}
  secret_distribution: SECRET_DISTRIBUTION_UNIFORM_TERNARY
}}
"""


def _operation(name, kind, *fields):
    lines = "".join(f"    {field}\n" for field in fields)
    return f'operations {{\n  name: "{name}"\n  {kind} {{\n{lines}  }}\n}}\n'


def _layer(layer, source, block, block_count):
    """A layer's matrix, rescaling, the sum of `block_count` blocks of `block` positions, bias."""
    # A constant has one number a position, the same for all items, and a period.
    expansion = f"expansion {{ repeat: {ITEM_COUNT} tile: true }}"
    text = _operation(
        f"{layer}_products",
        "linear_transform",
        f'a: "{source}"',
        f'diagonals: "{layer}.diagonals"',
        f'offsets: "{layer}.offsets"',
        f"baby_span: {BABY_COUNT * ITEM_COUNT}",
        expansion,
    )
    text += _operation(f"{layer}_blocks", "rescale", f'a: "{layer}_products"')
    edge = f"{layer}_blocks"
    step = ITEM_COUNT * block
    while step < ITEM_COUNT * block * block_count:
        turned, total = f"{layer}_turned_{step}", f"{layer}_sum_{step}"
        text += _operation(turned, "rotate", f'a: "{edge}"', f"step: {step}")
        text += _operation(total, "add", f'a: "{edge}"', f'b: "{turned}"')
        edge = total
        step *= 2
    text += _operation(layer, "add_plain", f'a: "{edge}"', f'constant: "{layer}.bias"', expansion)
    return text


def _layout(element_count):
    return f"""layout {{
    item_count: {ITEM_COUNT}
    item_stride: 1
    element_count: {element_count}
    element_stride: {ITEM_COUNT}
  }}"""


def text(magnitude_bound):
    """Returns program.textproto. `magnitude_bound` bounds the logits."""
    return f"""# proto-file: proto/cipherd/v1/program.proto
# proto-message: cipherd.v1.Program
# Written by deploy/train/train_fashion_mlp.py; fashion_mlp_program.py there explains the packing.
name: "fashion_mlp"
version: 1
description: "Fashion-MNIST, 784 -> 64 -> 10 with square activation, eight images a ciphertext"
constants_file: "constants.safetensors"
{_context()}inputs {{
  name: "images"
  {_layout(PIXEL_COUNT)}
  description: "pixels in [0, 1], row by row"
}}

{_layer("layer1", "images", HIDDEN_COUNT, POSITION_COUNT // HIDDEN_COUNT)}
{_operation("squared", "square", 'a: "layer1"')
}{_operation("relinearized", "relinearize", 'a: "squared"')
}{_operation("hidden", "rescale", 'a: "relinearized"')}
{_layer("layer2", "hidden", PADDED_LOGIT_COUNT, HIDDEN_COUNT // PADDED_LOGIT_COUNT)}
outputs {{
  name: "logits"
  edge: "layer2"
  {_layout(LOGIT_COUNT)}
  description: "one logit a class; the greatest is the prediction"
  magnitude_bound: {magnitude_bound}
}}
"""
