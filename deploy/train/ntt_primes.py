"""Primes q = 1 mod 2N, chosen by the rules of core/ring/primes.h."""

# Deciding for every n below 3.1e23 (Sorenson and Webster, "Strong pseudoprimes to twelve prime
# bases", Mathematics of Computation 86, 2017).
_WITNESSES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)


def is_prime(n):
    """Whether n is prime, by the Miller-Rabin test with deciding witnesses."""
    if n < 2 or any(n % p == 0 for p in _WITNESSES):
        return n in _WITNESSES
    twos = ((n - 1) & -(n - 1)).bit_length() - 1
    for witness in _WITNESSES:
        x = pow(witness, (n - 1) >> twos, n)
        if x in (1, n - 1):
            continue
        for _ in range(twos - 1):
            x = x * x % n
            if x == n - 1:
                break
        else:
            return False
    return True


def below(log_n, bits):
    """Yields the primes in (2^(bits-1), 2^bits), the greatest first."""
    step = 2 << log_n
    for q in range((1 << bits) - step + 1, 1 << (bits - 1), -step):
        if is_prime(q):
            yield q


def around(log_n, bits):
    """Yields the primes nearest to 2^bits on either side, the nearest first."""
    step = 2 << log_n
    # Distances alternate: + 1, - (step - 1), + (step + 1), - (2 step - 1), ...
    for k in range(0, (1 << (bits - 1)) // step):
        for q in ((1 << bits) + k * step + 1, (1 << bits) - (k + 1) * step + 1):
            if is_prime(q):
                yield q


def take(primes, count, taken):
    """Returns the first `count` of `primes` that are not in `taken`, and adds them to it."""
    found = []
    while len(found) < count:
        q = next(primes)
        if q not in taken:
            found.append(q)
            taken.add(q)
    return found
