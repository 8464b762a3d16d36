#include "server/device_list.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/status_macros.h"

namespace cipherd::server {
namespace {

using runtime::DeviceId;

// Hosts have so many GPUs; and metrics have a row for each.
constexpr size_t kMostDevices = 16;

absl::Status Invalid(const std::string& expected, const std::string& text) {
  return absl::InvalidArgumentError(
      absl::StrCat("device: expected ", expected, ", got \"", text, "\""));
}

std::string ShownGpus(int count) {
  return absl::StrCat("this process can use ", count, count == 1 ? " GPU" : " GPUs");
}

absl::Status Check(const std::vector<DeviceId>& ids, const std::string& text, int gpu_count) {
  if (ids.size() > kMostDevices) {
    return Invalid(absl::StrCat("at most ", kMostDevices, " devices"),
                   absl::StrCat(ids.size(), " of them"));
  }
  for (const DeviceId& id : ids) {
    if (id.kind != ids.front().kind) return Invalid("GPUs or CPU devices, not both", text);
    if (std::ranges::count(ids, id) > 1) {
      return Invalid(absl::StrCat("each device once (", id.ToString(), " is there twice)"), text);
    }
    // OpenDevice knows why there is none at all.
    const bool is_missing = id.kind == DeviceId::Kind::kCuda && id.ordinal >= gpu_count;
    if (ids.size() > 1 && gpu_count > 0 && is_missing) {
      return absl::NotFoundError(absl::StrCat("device: expected GPUs that are there, got \"",
                                              id.ToString(), "\" in \"", text,
                                              "\": ", ShownGpus(gpu_count)));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<DeviceId>> ParseDeviceList(const std::string& text, int gpu_count) {
  if (text == "auto") {
    return std::vector<DeviceId>{{gpu_count > 0 ? DeviceId::Kind::kCuda : DeviceId::Kind::kCpu, 0}};
  }
  std::vector<DeviceId> ids;
  if (text == "cuda:all") {
    // Where there is none, the first, whose OpenDevice says why.
    for (int ordinal = 0; ordinal < std::max(gpu_count, 1); ++ordinal) {
      ids.push_back({DeviceId::Kind::kCuda, ordinal});
    }
    CIPHERD_RETURN_IF_ERROR(Check(ids, text, gpu_count));
    return ids;
  }
  for (const std::string& item : std::vector<std::string>(absl::StrSplit(text, ','))) {
    if (item == "auto" || item == "cuda:all") {
      return Invalid(absl::StrCat("\"", item, "\" alone, not in a list"), text);
    }
    absl::StatusOr<DeviceId> id = DeviceId::Parse(item);
    if (!id.ok()) {
      return Invalid(
          "\"auto\", \"cuda:all\", or \"cpu\", \"cpu:N\", \"cuda\", \"cuda:N\" with commas between",
          text);
    }
    if (item == "cpu") id->ordinal = static_cast<int>(ids.size());
    ids.push_back(*id);
  }
  CIPHERD_RETURN_IF_ERROR(Check(ids, text, gpu_count));
  return ids;
}

absl::StatusOr<std::vector<std::unique_ptr<runtime::Device>>> OpenDevices(
    const std::vector<DeviceId>& ids, const runtime::DeviceOptions& pools) {
  std::vector<std::unique_ptr<runtime::Device>> devices;
  for (const DeviceId& id : ids) {
    runtime::DeviceOptions options = pools;
    if (!devices.empty()) options.pinned_memory.initial_bytes = 0;
    CIPHERD_ASSIGN_OR_RETURN(std::unique_ptr<runtime::Device> device,
                             runtime::OpenDevice(id.ToString(), options));
    devices.push_back(std::move(device));
  }
  return devices;
}

std::string DeviceIds(const engine::Engine& engine) {
  std::vector<std::string> ids;
  for (size_t i = 0; i < engine.device_count(); ++i) {
    ids.push_back(engine.device(i).id().ToString());
  }
  return absl::StrJoin(ids, ",");
}

std::string DeviceNames(const engine::Engine& engine) {
  std::set<std::string> names;
  for (size_t i = 0; i < engine.device_count(); ++i) {
    names.insert(engine.device(i).properties().name);
  }
  return absl::StrJoin(names, ", ");
}

}  // namespace cipherd::server
