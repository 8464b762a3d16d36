#include "core/programs/tiled_constants.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace cipherd::programs::internal {

absl::StatusOr<TileCopies> TileCopies::Make(runtime::Device& device) {
  TileCopies copies;
  CIPHERD_ASSIGN_OR_RETURN(copies.stream, device.CreateStream("constants"));
  CIPHERD_ASSIGN_OR_RETURN(copies.forked, device.CreateEvent());
  for (int buffer : {0, 1}) {
    CIPHERD_ASSIGN_OR_RETURN(copies.copied[buffer], device.CreateEvent());
    CIPHERD_ASSIGN_OR_RETURN(copies.read[buffer], device.CreateEvent());
  }
  return copies;
}

absl::StatusOr<std::unique_ptr<TiledConstants>> TiledConstants::Make(const CheckedProgram& program,
                                                                     const ckks::Encoder& encoder,
                                                                     runtime::Stream& stream,
                                                                     int64_t budget_bytes) {
  const int64_t most_bytes = budget_bytes / 2;
  std::unique_ptr<TiledConstants> tiles(new TiledConstants);
  std::vector<const Operation*> tile;
  int64_t bytes = 0;
  for (const Operation& operation : program.spec.operations) {
    if (!ReadsConstant(operation.kind)) continue;
    const int64_t own_bytes = EncodedBytes(program, operation);
    if (own_bytes > most_bytes) {
      return absl::ResourceExhaustedError(
          absl::StrCat("operation '", operation.name, "', constant '", operation.constant,
                       "': expected at most ", most_bytes,
                       " bytes, half of what constants may take on the device, got ", own_bytes,
                       " encoded; allow more, or split the operation"));
    }
    if (bytes + own_bytes > most_bytes) {
      CIPHERD_RETURN_IF_ERROR(tiles->AddTile(program, encoder, stream.device(), tile));
      tile.clear();
      bytes = 0;
    }
    tile.push_back(&operation);
    bytes += own_bytes;
  }
  if (!tile.empty()) {
    CIPHERD_RETURN_IF_ERROR(tiles->AddTile(program, encoder, stream.device(), tile));
  }
  return tiles;
}

absl::Status TiledConstants::AddTile(const CheckedProgram& program, const ckks::Encoder& encoder,
                                     runtime::Device& device,
                                     const std::vector<const Operation*>& operations) {
  Tile tile;
  for (const Operation* operation : operations) tile.bytes += EncodedBytes(program, *operation);
  CIPHERD_ASSIGN_OR_RETURN(tile.host, device.AllocatePinned(static_cast<size_t>(tile.bytes)));
  tile.last_operation = operations.back()->name;
  int64_t byte_offset = 0;
  for (const Operation* operation : operations) {
    CIPHERD_ASSIGN_OR_RETURN(const OperationConstants encoded,
                             EncodeOperation(program, *operation, encoder));
    Place place = {.tile = tile_count(), .byte_offset = byte_offset};
    CIPHERD_ASSIGN_OR_RETURN(place.constants, ViewsOf(encoded, tile.host, byte_offset));
    for (const auto& [offset, plaintext] : encoded) {
      std::memcpy(place.constants.at(offset).data.data(), plaintext.data.data(),
                  plaintext.data.bytes());
    }
    places_.emplace(operation->name, std::move(place));
    byte_offset += EncodedBytes(program, *operation);
  }
  tile_bytes_ = std::max(tile_bytes_, tile.bytes);
  host_bytes_ += tile.bytes;
  tiles_.push_back(std::move(tile));
  return absl::OkStatus();
}

absl::StatusOr<ConstantFeed> ConstantFeed::Begin(const TiledConstants& tiles, TileCopies& copies,
                                                 runtime::Stream& stream) {
  ConstantFeed feed(tiles, copies, stream);
  for (runtime::StoragePtr& buffer : feed.buffers_) {
    CIPHERD_ASSIGN_OR_RETURN(
        buffer, stream.device().Allocate(static_cast<size_t>(tiles.tile_bytes()), stream));
    buffer->RecordUse(*copies.stream);
  }
  // What used the buffers' memory before has passed.
  CIPHERD_RETURN_IF_ERROR(stream.Record(*copies.forked));
  CIPHERD_RETURN_IF_ERROR(copies.stream->Wait(*copies.forked));
  CIPHERD_RETURN_IF_ERROR(feed.CopyTile(0));
  CIPHERD_RETURN_IF_ERROR(feed.CopyTile(1));
  return feed;
}

absl::Status ConstantFeed::CopyTile(int64_t tile) {
  if (tile >= tiles_->tile_count()) return absl::OkStatus();
  const int buffer = static_cast<int>(tile % 2);
  const TiledConstants::Tile& source = tiles_->tiles_[tile];
  if (tile >= 2) CIPHERD_RETURN_IF_ERROR(copies_->stream->Wait(*copies_->read[buffer]));
  CIPHERD_RETURN_IF_ERROR(copies_->stream->CopyAsync(buffers_[buffer]->data(), source.host->data(),
                                                     static_cast<size_t>(source.bytes)));
  return copies_->stream->Record(*copies_->copied[buffer]);
}

absl::StatusOr<const OperationConstants*> ConstantFeed::Enter(std::string_view operation) {
  const TiledConstants::Place& place = tiles_->places_.find(operation)->second;
  const int buffer = static_cast<int>(place.tile % 2);
  if (entered_ < place.tile) {
    CIPHERD_RETURN_IF_ERROR(stream_->Wait(*copies_->copied[buffer]));
    entered_ = place.tile;
  }
  CIPHERD_ASSIGN_OR_RETURN(views_, ViewsOf(place.constants, buffers_[buffer], place.byte_offset));
  return &views_;
}

absl::Status ConstantFeed::Leave(std::string_view operation) {
  const int64_t tile = tiles_->places_.find(operation)->second.tile;
  if (tiles_->tiles_[tile].last_operation != operation) return absl::OkStatus();
  CIPHERD_RETURN_IF_ERROR(stream_->Record(*copies_->read[tile % 2]));
  return CopyTile(tile + 2);
}

}  // namespace cipherd::programs::internal
