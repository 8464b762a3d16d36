// What --device names: one device, or several for one daemon to serve on.
//
//   CIPHERD_ASSIGN_OR_RETURN(std::vector<runtime::DeviceId> ids,
//                            ParseDeviceList("cuda:0,cuda:1", runtime::CudaDeviceCount()));
//   CIPHERD_ASSIGN_OR_RETURN(auto devices, OpenDevices(ids, pools));
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/runtime/device.h"
#include "core/runtime/device_id.h"
#include "server/engine/engine.h"

namespace cipherd::server {

// "auto" (the first GPU where there is one, else the CPU), "cuda:all", or devices with commas
// between them, GPUs or CPU devices, each once and at most 16. "cpu" without a number has that of
// its place in the list, so that "cpu,cpu" are two devices on the one processor. `gpu_count`: of
// this process; where it is 0, GPUs are returned as they are named, for OpenDevices to say why they
// are not there. InvalidArgument and NotFound, with what was expected and what was there.
absl::StatusOr<std::vector<runtime::DeviceId>> ParseDeviceList(const std::string& text,
                                                               int gpu_count);

// Opens them all, each with pools of its own. Pinned memory that is taken at the start is the first
// one's, where requests and key sets have theirs (engine.h). Errors of runtime::OpenDevice.
absl::StatusOr<std::vector<std::unique_ptr<runtime::Device>>> OpenDevices(
    const std::vector<runtime::DeviceId>& ids, const runtime::DeviceOptions& pools);

// For people: "cuda:0,cuda:1", and "NVIDIA H200", each name once.
std::string DeviceIds(const engine::Engine& engine);
std::string DeviceNames(const engine::Engine& engine);

}  // namespace cipherd::server
