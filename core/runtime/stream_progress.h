// How far a stream has come, for whoever must know when work that uses a block has passed.
//
//   const uint64_t position = progress->Mark();   // everything enqueued up to now
//   ...
//   if (progress->HasPassed(position)) Reuse(block);
//
// Positions of one stream grow, so that a later one covers every earlier one. Work recorded into a
// capture has no position: it does not run. The object outlives its stream; once the stream is
// destroyed everything has passed. Thread-safe, also against the thread that submits to the stream.
#pragma once

#include <cstdint>

namespace cipherd::runtime {

class StreamProgress {
 public:
  virtual ~StreamProgress() = default;

  // The position of everything enqueued so far. Does not block.
  virtual uint64_t Mark() = 0;

  // Whether everything up to `position` (from Mark) has completed. Never blocks. Stays false on a
  // stream whose device failed in such a way that nobody knows.
  virtual bool HasPassed(uint64_t position) = 0;
};

}  // namespace cipherd::runtime
