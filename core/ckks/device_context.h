// The tables of a context on one device: what every launch of an evaluation reads.
//
//   ASSIGN_OR_RETURN(std::unique_ptr<DeviceContext> tables,
//                    DeviceContext::Create(context, device, stream));
//   Evaluator evaluator(*tables);
//
// Everything is computed on the host once, for every depth and digit, and uploaded in one block;
// the addresses in the structs below point into it. Immutable and thread-safe. It must outlive
// every launch that uses it, captured graphs included, and the device must outlive it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "core/ckks/context.h"
#include "core/kernels/kernel_table.h"
#include "core/ring/ring_tables.h"
#include "core/runtime/device.h"
#include "core/runtime/memory.h"
#include "core/runtime/stream.h"

namespace cipherd::ckks {

using kernels::LimbDrop;

// Adjacent limbs [first, first + primes.count) of an operand.
struct LimbRun {
  int first = 0;
  kernels::LimbPrimes primes;
};

// ModUp of one digit with active primes: residues modulo them, raised to all active primes of QP.
struct DigitLift {
  int key_digit = 0;         // its number in ContextParameters::digits
  int first_packed = 0;      // its first limb in the packed order (see ModUpPlan)
  int source_count = 0;      // active primes of the digit
  std::vector<LimbRun> own;  // QP limbs that are the digit's, copied
  // QP limbs that are converted, with the tables from all source limbs to this run.
  struct Target {
    LimbRun run;
    ring::BasisConversionTables conversion;  // device addresses
  };
  std::vector<Target> targets;
};

// ModUp at one depth. Digits can be any sets of primes, while a basis conversion reads adjacent
// limbs, so the inverse NTT writes the active Q limbs in packed order: digit by digit.
struct ModUpPlan {
  // Operand limbs [run.first, …) go to packed limbs [first_packed, …). One entry where all digits
  // are runs in order.
  struct Gather {
    LimbRun run;
    int first_packed = 0;
  };
  std::vector<Gather> gathers;
  std::vector<DigitLift> digits;  // those with active primes, ascending
  // The same for fused steps; lift_count 0 where there are more digits, or primes in one, than
  // those take.
  kernels::LiftPlan fused;
};

// Which kernels an evaluation runs. Results do not depend on it.
struct KernelChoice {
  // Without one, the faster one that the primes and the device allow.
  std::optional<kernels::Arithmetic> arithmetic;
  // Fused steps where the device has them; without them, their compositions.
  bool fused = true;
};

class DeviceContext {
 public:
  // Computes, uploads over `stream` (of `device`) and waits for the upload. ResourceExhausted where
  // device memory runs out; InvalidArgument for an arithmetic that the primes do not allow.
  static absl::StatusOr<std::unique_ptr<DeviceContext>> Create(
      std::shared_ptr<const Context> context, runtime::Device& device, runtime::Stream& stream,
      const KernelChoice& choice = {});

  DeviceContext(const DeviceContext&) = delete;
  DeviceContext& operator=(const DeviceContext&) = delete;

  const Context& context() const { return *context_; }
  const std::shared_ptr<const Context>& shared_context() const { return context_; }
  const ContextParameters& parameters() const { return context_->parameters(); }
  runtime::Device& device() const { return device_; }
  const kernels::KernelTable& kernels() const { return kernels_; }
  // Fused steps that take the ring of this context, or null.
  const kernels::FusedKernels* fused() const { return fused_; }
  // Rows with device addresses; row i belongs to prime id i.
  const ring::RingTables& ring() const { return ring_; }

  // Requires 0 ≤ depth ≤ max_depth.
  const kernels::LimbPrimes& q_limbs(int depth) const { return depths_[depth].q; }
  const kernels::LimbPrimes& qp_limbs(int depth) const { return depths_[depth].qp; }
  // P modulo the prime of each limb of qp_limbs: 0 for those of P.
  const std::array<uint64_t, kernels::kMaxLimbs>& p_residues(int depth) const {
    return depths_[depth].p_residues;
  }
  const LimbDrop& mod_down(int depth) const { return depths_[depth].mod_down; }
  const ModUpPlan& mod_up(int depth) const { return depths_[depth].mod_up; }
  // From `depth` to depth + 1. Requires depth < max_depth.
  const LimbDrop& rescale(int depth) const { return depths_[depth].rescale; }
  // mod_down and rescale at once.
  const LimbDrop& mod_down_rescale(int depth) const { return depths_[depth].mod_down_rescale; }

  // Bytes of the block on the device.
  size_t table_bytes() const { return tables_->bytes(); }

 private:
  struct Depth {
    kernels::LimbPrimes q;
    kernels::LimbPrimes qp;
    std::array<uint64_t, kernels::kMaxLimbs> p_residues = {};
    LimbDrop mod_down;
    LimbDrop rescale;
    LimbDrop mod_down_rescale;
    ModUpPlan mod_up;
  };

  DeviceContext(std::shared_ptr<const Context> context, runtime::Device& device,
                kernels::Arithmetic arithmetic, bool fused);

  const std::shared_ptr<const Context> context_;
  runtime::Device& device_;
  const kernels::KernelTable& kernels_;
  const kernels::FusedKernels* fused_ = nullptr;
  ring::RingTables ring_ = {};
  std::vector<Depth> depths_;
  runtime::StoragePtr tables_;
};

}  // namespace cipherd::ckks
