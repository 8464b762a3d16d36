// A program as the Open Inference Protocol describes a model.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "cipherd/v1/evaluation.pb.h"
#include "inference/grpc_service.pb.h"

namespace cipherd::oip {

// The platform of every model.
inline constexpr char kPlatform[] = "cipherd";

// Fills `metadata` from the description of a program. The properties hold what it takes to encrypt
// inputs and decrypt outputs (proto/WIRE_FORMAT.md lists them). `versions` are those that may be
// asked for. Internal where the description is not that of a program.
absl::Status EncodeModelMetadata(const v1::GetProgramResponse& program,
                                 const std::vector<uint32_t>& versions,
                                 inference::ModelMetadataResponse* metadata);

}  // namespace cipherd::oip
