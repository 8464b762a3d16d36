// Evaluation keys on disk, written and read one key at a time: a set can be larger than memory.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/files/file_reader.h"
#include "client/files/file_writer.h"
#include "core/value/exact_value.h"
#include "proto/codec/known_context.h"
#include "proto/codec/wire_limits.h"

namespace cipherd::client {

// Move-only. Nothing appears under the name before Commit.
class KeySetFileWriter {
 public:
  static absl::StatusOr<KeySetFileWriter> Create(const std::string& path,
                                                 const codec::KnownContext& context, int key_count,
                                                 uint64_t total_bytes);
  absl::Status Add(const value::ExactValue& key);
  absl::Status Commit() &&;

 private:
  explicit KeySetFileWriter(FileWriter file) : file_(std::move(file)) {}

  FileWriter file_;
};

// Move-only. Keys are checked as those that come over the wire are.
class KeySetFileReader {
 public:
  // InvalidArgument where the keys belong to another context than `context`.
  static absl::StatusOr<KeySetFileReader> Open(const std::string& path,
                                               codec::KnownContextPtr context,
                                               const codec::WireLimits& limits);

  int key_count() const { return static_cast<int>(file_.header().key_set().key_count()); }
  uint64_t total_bytes() const { return file_.header().key_set().total_bytes(); }

  // The next of key_count() keys.
  absl::StatusOr<value::ExactValue> ReadKey();
  // After the last key: whether the file was whole.
  absl::Status Finish() { return file_.Finish(); }

 private:
  KeySetFileReader(FileReader file, codec::KnownContextPtr context, const codec::WireLimits& limits)
      : file_(std::move(file)), context_(std::move(context)), limits_(limits) {}

  FileReader file_;
  codec::KnownContextPtr context_;
  codec::WireLimits limits_;
};

}  // namespace cipherd::client
