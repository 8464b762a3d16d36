// Constants that are more than the device is to hold: they stay in pinned host memory, cut into
// tiles in the order of the schedule, and each evaluation copies them through two buffers.
// Internal to the interpreter.
//
//   CIPHERD_ASSIGN_OR_RETURN(auto tiles, TiledConstants::Make(program, encoder, stream, budget));
//   CIPHERD_ASSIGN_OR_RETURN(TileCopies copies, TileCopies::Make(device));
//   CIPHERD_ASSIGN_OR_RETURN(ConstantFeed feed, ConstantFeed::Begin(*tiles, copies, stream));
//   for (operations in their order) {
//     CIPHERD_ASSIGN_OR_RETURN(const OperationConstants* constants, feed.Enter(operation.name));
//     ... enqueue what reads them ...
//     CIPHERD_RETURN_IF_ERROR(feed.Leave(operation.name));
//   }
//
// Copies run on a stream of their own, forked from the caller's: while one tile is computed on, the
// next is copied into the other buffer, once the work that read that has passed. So an evaluation
// holds two tiles of device memory, whatever the program has. All of it can be captured: a graph
// then holds copies from the pinned memory, which its owner keeps by keeping this.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/ckks/encoder.h"
#include "core/programs/encoded_constants.h"
#include "core/programs/program_checker.h"
#include "core/runtime/device.h"
#include "core/runtime/event.h"
#include "core/runtime/memory.h"
#include "core/runtime/stream.h"

namespace cipherd::programs::internal {

// What copies tiles for one evaluation after another: a stream and its events. It serves one thread
// at a time, and outlives the captures that it is used in.
struct TileCopies {
  static absl::StatusOr<TileCopies> Make(runtime::Device& device);

  std::unique_ptr<runtime::Stream> stream;
  std::shared_ptr<runtime::Event> forked;
  // By buffer: when it holds its tile, and when that has been read.
  std::array<std::shared_ptr<runtime::Event>, 2> copied;
  std::array<std::shared_ptr<runtime::Event>, 2> read;
};

// Immutable and thread-safe.
class TiledConstants {
 public:
  // Encodes every constant into pinned memory of the stream's device. A tile is at most half of
  // `budget_bytes`, and holds the constants of whole operations. ResourceExhausted, naming the
  // operation, where those of one are larger; or where pinned memory runs out.
  static absl::StatusOr<std::unique_ptr<TiledConstants>> Make(const CheckedProgram& program,
                                                              const ckks::Encoder& encoder,
                                                              runtime::Stream& stream,
                                                              int64_t budget_bytes);

  int64_t tile_count() const { return static_cast<int64_t>(tiles_.size()); }
  // Of the largest tile: an evaluation holds two of them.
  int64_t tile_bytes() const { return tile_bytes_; }
  // In pinned memory, of all tiles.
  int64_t host_bytes() const { return host_bytes_; }

 private:
  friend class ConstantFeed;

  struct Tile {
    runtime::StoragePtr host;
    // Bytes of `host` that are its own.
    int64_t bytes = 0;
    std::string last_operation;
  };
  struct Place {
    int64_t tile = 0;
    int64_t byte_offset = 0;
    // In host memory, in the tile.
    OperationConstants constants;
  };

  TiledConstants() = default;

  absl::Status AddTile(const CheckedProgram& program, const ckks::Encoder& encoder,
                       runtime::Device& device, const std::vector<const Operation*>& operations);

  std::vector<Tile> tiles_;
  std::map<std::string, Place, std::less<>> places_;
  int64_t tile_bytes_ = 0;
  int64_t host_bytes_ = 0;
};

// One evaluation's way through the tiles. Operations that read constants enter and leave in the
// order of the schedule.
class ConstantFeed {
 public:
  // Enqueues the first copies, after what is on `stream` so far. `tiles` and `copies` must outlive
  // what is enqueued, or captured.
  static absl::StatusOr<ConstantFeed> Begin(const TiledConstants& tiles, TileCopies& copies,
                                            runtime::Stream& stream);

  // Makes the stream wait for the operation's tile, and returns its constants there: valid for what
  // is enqueued before Leave.
  absl::StatusOr<const OperationConstants*> Enter(std::string_view operation);
  // Lets the tile go once its last operation has left, and enqueues the copy that waits for that.
  absl::Status Leave(std::string_view operation);

 private:
  ConstantFeed(const TiledConstants& tiles, TileCopies& copies, runtime::Stream& stream)
      : tiles_(&tiles), copies_(&copies), stream_(&stream) {}

  absl::Status CopyTile(int64_t tile);

  const TiledConstants* tiles_;
  TileCopies* copies_;
  runtime::Stream* stream_;
  std::array<runtime::StoragePtr, 2> buffers_;
  // The tile that the stream waits for already.
  int64_t entered_ = -1;
  OperationConstants views_;
};

}  // namespace cipherd::programs::internal
