"""AdamW with warm-up and cosine decay, in float32, for models of a few small arrays."""

import numpy as np

try:
    from tqdm import tqdm
except ImportError:

    def tqdm(iterable, **_):
        return iterable


WARM_UP_STEP_COUNT = 200


def smoothed_loss_gradient(logits, labels, smoothing):
    """Gradient by the logits of the mean cross-entropy with targets smoothed by `smoothing`."""
    probabilities = np.exp(logits - logits.max(axis=1, keepdims=True))
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    target = np.full_like(probabilities, smoothing / probabilities.shape[1])
    target[np.arange(len(labels)), labels] += 1 - smoothing
    return (probabilities - target) / len(labels)


def minimize(parameters, decays, item_count, gradients, options, random):
    """Changes `parameters` in place. `gradients(parameters, rows)` are those of the items `rows`.

    Each array decays by its own of `decays`. `options` has epochs, batch_size, learning_rate.
    """
    means = [np.zeros_like(p) for p in parameters]
    squares = [np.zeros_like(p) for p in parameters]
    batch_count = item_count // options.batch_size
    step_count = options.epochs * batch_count
    step = 0
    for _ in tqdm(range(options.epochs), desc="training", unit="epoch"):
        order = random.permutation(item_count)
        for batch in range(batch_count):
            rows = order[batch * options.batch_size : (batch + 1) * options.batch_size]
            step += 1
            rate = options.learning_rate * 0.5 * (1 + np.cos(np.pi * step / step_count))
            rate = float(rate * min(1.0, step / WARM_UP_STEP_COUNT))
            for p, mean, square, decay, gradient in zip(
                parameters, means, squares, decays, gradients(parameters, rows)
            ):
                mean += np.float32(0.1) * (gradient - mean)
                square += np.float32(0.001) * (gradient * gradient - square)
                update = mean / (1 - 0.9**step) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
                p -= (rate * (update + decay * p)).astype(np.float32)
