// Bytes a second that one core decodes into pinned memory, residues checked, beside plain copies of
// the same chunks into the same memory. log N = 14, 8 primes of about 50 bits, two components (2.1
// MB), chunks of 1 MiB that are not in cache.
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "benchmark/benchmark.h"
#include "core/base/sha256.h"
#include "core/ckks/ciphertext.h"
#include "core/runtime/device.h"
#include "proto/codec/payload_reader.h"
#include "proto/codec/tree_admission.h"
#include "proto/codec/tree_encoder.h"

namespace cipherd::codec {
namespace {

constexpr size_t kChunkBytes = size_t{1} << 20;
constexpr size_t kPayloadCopies = 64;  // more than any cache holds

struct Bench {
  KnownContextPtr context =
      *KnownContext::Create(*ckks::MakeContextParameters({.log_n = 14,
                                                          .base_prime_bits = 50,
                                                          .depth_prime_bits = 45,
                                                          .max_depth = 7,
                                                          .p_prime_bits = 50,
                                                          .p_prime_count = 1,
                                                          .digit_count = 8},
                                                         ckks::SecurityPolicy::kAllowInsecure),
                            ckks::SecurityPolicy::kAllowInsecure);
  std::unique_ptr<runtime::Device> device = *runtime::OpenDevice("cpu", {});
  v1::ValueTree description;
  std::vector<std::string> payloads;
  value::ValueTree lease;

  Bench() {
    const int64_t limbs = context->parameters().q_count();
    const int64_t degree = context->parameters().ring_degree();
    ckks::Ciphertext ciphertext;
    ciphertext.data =
        *value::Tensor::AllocatePinned(*device, value::DType::kUint64, {2, limbs, degree});
    ciphertext.scale = context->parameters().default_scale;
    for (int64_t i = 0; i < 2 * limbs * degree; ++i) {
      const uint64_t prime = context->primes()[static_cast<size_t>(i / degree % limbs)];
      ciphertext.data.data_as<uint64_t>()[i] =
          static_cast<uint64_t>(i) * 0x9e3779b97f4a7c15 % prime;
    }
    lease = value::ValueTree::Value(ciphertext.ToValue(context->parameters(), context->id()));
    PayloadSource payload = *EncodeTree(lease, "value", &description);
    std::string bytes;
    payload.AppendTo(payload.total_bytes(), &bytes);
    payloads.assign(kPayloadCopies, bytes);
  }
};

Bench& Shared() {
  static Bench& bench = *new Bench;
  return bench;
}

void BM_DecodeIntoPinnedLease(benchmark::State& state) {
  Bench& bench = Shared();
  const KnownContextPtr contexts[] = {bench.context};
  const TreeExpectation expectation = {.contexts = contexts,
                                       .max_payload_bytes = uint64_t{1} << 30};
  size_t next = 0;
  for (auto _ : state) {
    const std::string& payload = bench.payloads[next++ % kPayloadCopies];
    PayloadReader reader = *PayloadReader::Into(
        *AdmitTree(bench.description, expectation, WireLimits(), "value"), bench.lease);
    for (size_t at = 0; at < payload.size(); at += kChunkBytes) {
      if (!reader.Write(std::string_view(payload).substr(at, kChunkBytes)).ok()) {
        return state.SkipWithError("refused");
      }
    }
    if (!std::move(reader).Finish().ok()) return state.SkipWithError("refused");
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(bench.payloads[0].size()));
}
BENCHMARK(BM_DecodeIntoPinnedLease)->Unit(benchmark::kMicrosecond);

void BM_PlainCopyIntoPinnedLease(benchmark::State& state) {
  Bench& bench = Shared();
  auto* target = bench.lease.exact_value().tensors[0].second.data_as<char>();
  size_t next = 0;
  for (auto _ : state) {
    const std::string& payload = bench.payloads[next++ % kPayloadCopies];
    for (size_t at = 0; at < payload.size(); at += kChunkBytes) {
      const std::string_view chunk = std::string_view(payload).substr(at, kChunkBytes);
      std::memcpy(target + at, chunk.data(), chunk.size());
    }
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(bench.payloads[0].size()));
}
BENCHMARK(BM_PlainCopyIntoPinnedLease)->Unit(benchmark::kMicrosecond);

void BM_EncodeIntoChunks(benchmark::State& state) {
  Bench& bench = Shared();
  v1::ValueTree description;
  std::string chunk;
  for (auto _ : state) {
    PayloadSource payload = *EncodeTree(bench.lease, "value", &description);
    while (payload.remaining_bytes() > 0) payload.TakeInto(kChunkBytes, &chunk);
    benchmark::DoNotOptimize(chunk.data());
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(bench.payloads[0].size()));
}
BENCHMARK(BM_EncodeIntoChunks)->Unit(benchmark::kMicrosecond);

void BM_HashOfPayload(benchmark::State& state) {
  Bench& bench = Shared();
  for (auto _ : state) {
    base::Sha256 hash;
    hash.Update(bench.payloads[0].data(), bench.payloads[0].size());
    benchmark::DoNotOptimize(hash.Finish());
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(bench.payloads[0].size()));
}
BENCHMARK(BM_HashOfPayload)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace cipherd::codec

BENCHMARK_MAIN();
