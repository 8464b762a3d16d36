"""Times SEAL (as TenSEAL carries it) and OpenFHE on the cases of cases.json, one thread.

    peers.py --library seal|openfhe [--case NAME]... [--rounds N] [--json FILE]

A case is {name, log_n, base_bits, depth_bits, depth, p_bits, digits, peer}: depth + 1 primes of Q, the last of
base_bits, in `digits` digits of key switching. SEAL always makes a digit of each prime, with one P prime, so that
cases for it say so; OpenFHE picks the bits of its P primes itself. Every result is decrypted and compared before a
time counts. Times are of the process's processor time: other work on the machine does not count, but its caches do.
"""

import argparse
import json
import pathlib
import statistics
import sys
import time

TOLERANCE = 1e-3


def median_ms(function, rounds):
    times = []
    for _ in range(rounds):
        start = time.process_time_ns()
        function()
        times.append((time.process_time_ns() - start) / 1e6)
    return statistics.median(times)


def require_close(actual, expected, what):
    error = max(abs(a - b) for a, b in zip(actual, expected))
    if error > TOLERANCE:
        sys.exit(f"{what}: expected an error of at most {TOLERANCE}, got {error}")


def message(slots):
    return [0.5 + (j % 7) / 16 for j in range(slots)]


def time_seal(case, rounds):
    import tenseal.sealapi as seal

    degree, slots, scale = 1 << case["log_n"], 1 << (case["log_n"] - 1), 2.0 ** case["depth_bits"]
    bits = [case["base_bits"]] + [case["depth_bits"]] * case["depth"] + [case["p_bits"]]
    parameters = seal.EncryptionParameters(seal.SCHEME_TYPE.CKKS)
    parameters.set_poly_modulus_degree(degree)
    parameters.set_coeff_modulus(seal.CoeffModulus.Create(degree, bits))
    context = seal.SEALContext(parameters, True, seal.SEC_LEVEL_TYPE.TC128)
    generator = seal.KeyGenerator(context)
    public_key, relinearization, rotations = seal.PublicKey(), seal.RelinKeys(), seal.GaloisKeys()
    generator.create_public_key(public_key)
    generator.create_relin_keys(relinearization)
    generator.create_galois_keys([3], rotations)  # by one slot
    encryptor, evaluator = seal.Encryptor(context, public_key), seal.Evaluator(context)
    encoder, decryptor = seal.CKKSEncoder(context), seal.Decryptor(context, generator.secret_key())
    values = message(slots)
    plain = seal.Plaintext()
    encoder.encode(values, scale, plain)

    def encrypt():
        out = seal.Ciphertext()
        encryptor.encrypt(plain, out)
        return out

    fresh = encrypt()

    def multiply_relinearize():
        out = seal.Ciphertext()
        evaluator.multiply(fresh, fresh, out)
        evaluator.relinearize_inplace(out, relinearization)
        return out

    product = multiply_relinearize()

    def rescale():
        out = seal.Ciphertext()
        evaluator.rescale_to_next(product, out)
        return out

    def rotate():
        out = seal.Ciphertext()
        evaluator.rotate_vector(fresh, 1, rotations, out)
        return out

    def decrypt(ciphertext):
        out = seal.Plaintext()
        decryptor.decrypt(ciphertext, out)
        return encoder.decode_double(out)

    require_close(decrypt(rescale()), [v * v for v in values], "SEAL product")
    require_close(decrypt(rotate()), values[1:] + values[:1], "SEAL rotation")
    return {
        "encrypt": median_ms(encrypt, rounds),
        "multiply_relinearize": median_ms(multiply_relinearize, rounds),
        "rescale": median_ms(rescale, rounds),
        "rotate": median_ms(rotate, rounds),
    }


def time_openfhe(case, rounds):
    import openfhe

    slots = 1 << (case["log_n"] - 1)
    parameters = openfhe.CCParamsCKKSRNS()
    parameters.SetRingDim(1 << case["log_n"])
    parameters.SetBatchSize(slots)
    parameters.SetMultiplicativeDepth(case["depth"])
    parameters.SetScalingModSize(case["depth_bits"])
    parameters.SetFirstModSize(case["base_bits"])
    parameters.SetNumLargeDigits(case["digits"])
    parameters.SetKeySwitchTechnique(openfhe.KeySwitchTechnique.HYBRID)
    parameters.SetScalingTechnique(openfhe.ScalingTechnique.FIXEDMANUAL)
    # Its own bound differs with the bits that it picks for P; the degree is given.
    parameters.SetSecurityLevel(openfhe.SecurityLevel.HEStd_NotSet)
    context = openfhe.GenCryptoContext(parameters)
    for feature in ("PKE", "KEYSWITCH", "LEVELEDSHE"):
        context.Enable(getattr(openfhe.PKESchemeFeature, feature))
    keys = context.KeyGen()
    context.EvalMultKeyGen(keys.secretKey)
    context.EvalRotateKeyGen(keys.secretKey, [1])
    values = message(slots)
    plain = context.MakeCKKSPackedPlaintext(values)
    fresh = context.Encrypt(keys.publicKey, plain)
    product = context.EvalMult(fresh, fresh)

    def decrypt(ciphertext):
        out = context.Decrypt(ciphertext, keys.secretKey)
        out.SetLength(slots)
        return out.GetRealPackedValue()

    require_close(decrypt(context.Rescale(product)), [v * v for v in values], "OpenFHE product")
    require_close(decrypt(context.EvalRotate(fresh, 1)), values[1:] + values[:1], "OpenFHE rotation")
    return {
        "encrypt": median_ms(lambda: context.Encrypt(keys.publicKey, plain), rounds),
        "multiply_relinearize": median_ms(lambda: context.EvalMult(fresh, fresh), rounds),
        "rescale": median_ms(lambda: context.Rescale(product), rounds),
        "rotate": median_ms(lambda: context.EvalRotate(fresh, 1), rounds),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", choices=("seal", "openfhe"), required=True)
    parser.add_argument("--case", action="append", help="these cases in place of all")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    cases = json.loads((pathlib.Path(__file__).parent / "cases.json").read_text())
    measure = {"seal": time_seal, "openfhe": time_openfhe}[arguments.library]
    results = []
    for case in cases:
        if case["peer"] != arguments.library or (arguments.case and case["name"] not in arguments.case):
            continue
        for operation, milliseconds in measure(case, arguments.rounds).items():
            results.append({"case": case["name"], "operation": operation, "ms": milliseconds})
            print(f"{arguments.library} {case['name']} {operation} {milliseconds:.3f} ms", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
