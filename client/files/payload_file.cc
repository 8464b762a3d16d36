#include "client/files/payload_file.h"

#include <span>
#include <utility>

#include "core/base/status_macros.h"
#include "proto/codec/payload_reader.h"
#include "proto/codec/tensor_plan.h"

namespace cipherd::client {

absl::StatusOr<value::ValueTree> ReadPayload(FileReader& file, codec::AdmittedTree admitted) {
  CIPHERD_ASSIGN_OR_RETURN(
      codec::PayloadReader payload,
      codec::PayloadReader::Allocate(std::move(admitted), codec::PageableTensors()));
  while (payload.remaining_bytes() > 0) {
    const std::span<uint8_t> region = payload.NextRegion();
    CIPHERD_RETURN_IF_ERROR(file.ReadBytes(region));
    CIPHERD_RETURN_IF_ERROR(payload.Advance(region.size()));
  }
  return std::move(payload).Finish();
}

}  // namespace cipherd::client
