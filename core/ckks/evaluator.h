// CKKS evaluation on one device: encrypted in, encrypted out, enqueued on a stream.
//
//   Evaluator evaluator(device_context);
//   ASSIGN_OR_RETURN(Ciphertext product, evaluator.Multiply(a, b, stream));
//   ASSIGN_OR_RETURN(product, evaluator.Relinearize(product, keys, stream));
//   ASSIGN_OR_RETURN(product, evaluator.Rescale(product, stream));
//
// Nothing relinearises, rescales or aligns by itself. Every function allocates its output (and
// scratch) on `stream` and enqueues there; none synchronises. Inputs must live on the device of the
// context; inputs allocated on another stream are ordered and kept by the caller. Results are
// canonical and equal on every device bit for bit. Stateless and thread-safe; the context must
// outlive it.
//
// Errors: InvalidArgument naming both states and the operation that mends it, where depths, scales,
// domains, components or batches do not fit; FailedPrecondition where a key is not in the table;
// ResourceExhausted where memory runs out. Scales of a sum must be equal as binary64.
//
// Batches: operands have equal batch axes, or one is an unbatched plaintext.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "core/ckks/ciphertext.h"
#include "core/ckks/evaluation_keys.h"
#include "core/runtime/stream.h"

namespace cipherd::ckks {

class DeviceContext;

// A ciphertext whose second component is decomposed into key-switching digits over QP (ModUp done),
// so that several rotations share that work (Halevi, Shoup, "Faster Homomorphic Linear
// Transformations in HElib", eprint 2018/244, section 4).
struct HoistedCiphertext {
  Ciphertext source;     // two components, NTT domain
  value::Tensor digits;  // uint64 [active digit, batch…, active QP limbs, N], NTT domain
};

class Evaluator {
 public:
  explicit Evaluator(const DeviceContext& context) : context_(context) {}

  const DeviceContext& context() const { return context_; }

  // ---- linear (evaluator_linear.cc): either domain, operands in the same; 2 or 3 components
  absl::StatusOr<Ciphertext> Add(const Ciphertext& a, const Ciphertext& b,
                                 runtime::Stream& stream) const;
  absl::StatusOr<Ciphertext> Subtract(const Ciphertext& a, const Ciphertext& b,
                                      runtime::Stream& stream) const;
  absl::StatusOr<Ciphertext> Negate(const Ciphertext& a, runtime::Stream& stream) const;
  absl::StatusOr<Ciphertext> AddPlain(const Ciphertext& a, const Plaintext& b,
                                      runtime::Stream& stream) const;
  absl::StatusOr<Ciphertext> SubtractPlain(const Ciphertext& a, const Plaintext& b,
                                           runtime::Stream& stream) const;
  absl::StatusOr<Ciphertext> ToNtt(const Ciphertext& a, runtime::Stream& stream) const;
  absl::StatusOr<Ciphertext> ToCoefficient(const Ciphertext& a, runtime::Stream& stream) const;

  // ---- multiply (evaluator_multiply.cc): NTT domain; scales multiply
  // Two components each; the product has three.
  absl::StatusOr<Ciphertext> Multiply(const Ciphertext& a, const Ciphertext& b,
                                      runtime::Stream& stream) const;
  absl::StatusOr<Ciphertext> Square(const Ciphertext& a, runtime::Stream& stream) const;
  absl::StatusOr<Ciphertext> MultiplyPlain(const Ciphertext& a, const Plaintext& b,
                                           runtime::Stream& stream) const;

  // ---- key switching (evaluator_keyswitch.cc): NTT domain
  // Three components to two.
  absl::StatusOr<Ciphertext> Relinearize(const Ciphertext& a, const KeyTable& keys,
                                         runtime::Stream& stream) const;

  // Relinearize and Rescale with one rounding instead of two, for little more than the time of the
  // first. Its words differ from theirs, within the noise.
  absl::StatusOr<Ciphertext> RelinearizeAndRescale(const Ciphertext& a, const KeyTable& keys,
                                                   runtime::Stream& stream) const;

  // ---- rescale (evaluator_rescale.cc)
  // Divides by the primes of the group of a's depth with exact rounding: depth + 1, scale / their
  // product. NTT domain, 2 or 3 components. InvalidArgument at the last depth.
  absl::StatusOr<Ciphertext> Rescale(const Ciphertext& a, runtime::Stream& stream) const;
  // Drops limbs until `depth`, the scale stays; for alignment. Either domain.
  absl::StatusOr<Ciphertext> DropToDepth(const Ciphertext& a, int depth,
                                         runtime::Stream& stream) const;

  // ---- rotate (evaluator_rotate.cc): NTT domain, two components
  // Slot j receives slot (j + step) mod S; any sign. A step that is 0 mod S needs no key and
  // copies.
  absl::StatusOr<Ciphertext> Rotate(const Ciphertext& a, int64_t step, const KeyTable& keys,
                                    runtime::Stream& stream) const;
  absl::StatusOr<Ciphertext> Conjugate(const Ciphertext& a, const KeyTable& keys,
                                       runtime::Stream& stream) const;
  absl::StatusOr<HoistedCiphertext> Hoist(const Ciphertext& a, runtime::Stream& stream) const;
  absl::StatusOr<Ciphertext> RotateHoisted(const HoistedCiphertext& a, int64_t step,
                                           const KeyTable& keys, runtime::Stream& stream) const;

 private:
  const DeviceContext& context_;
};

}  // namespace cipherd::ckks
