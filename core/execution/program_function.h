// What a program is made of: a callable over trees that enqueues its work on the stream it is
// given.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "core/runtime/event.h"
#include "core/runtime/stream.h"
#include "core/value/value_tree.h"

namespace cipherd::execution {

// Enqueues a fixed schedule of work on `stream` (and on streams forked from it and joined again),
// and returns its output, or ValueTree::None() for nothing. The same callable runs eagerly and
// captured.
//
// To be captured it must not synchronise, query, or allocate other than on its streams, and its
// control flow must depend on the signature of `inputs` alone. What else it reads (keys, weights,
// engines) is bound by the closure, which lives as long as the program.
using ProgramFunction = std::function<absl::StatusOr<value::ValueTree>(
    std::span<const value::ValueTree> inputs, runtime::Stream& stream)>;

// Events that a callable records, one an output, as soon as that is computed
// (Stream::RecordInLaunches): so that outputs of a replay can be read while it computes the others.
// Null for an output of which nobody asks; without any the callable records none. Each is a node of
// the graph: work behind it begins when it has been passed.
using OutputEvents = std::vector<std::shared_ptr<runtime::Event>>;

}  // namespace cipherd::execution
