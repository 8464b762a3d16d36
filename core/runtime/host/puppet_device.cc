#include "core/runtime/host/puppet_device.h"

#include <utility>

#include "core/base/status_macros.h"
#include "core/runtime/host/host_stream.h"

namespace cipherd::runtime::host {
namespace {

TaskQueue& QueueOf(Stream& stream) { return *static_cast<HostStream&>(stream).queue(); }

}  // namespace

absl::StatusOr<std::unique_ptr<PuppetDevice>> PuppetDevice::Open(
    const PuppetOptions& puppet_options, const DeviceOptions& options) {
  DeviceProperties properties;
  properties.name = "puppet";
  auto executor =
      std::make_unique<PuppetExecutor>(puppet_options.order, puppet_options.advances_on_query);
  std::unique_ptr<PuppetDevice> device(
      new PuppetDevice(std::move(properties), std::move(executor)));
  CIPHERD_RETURN_IF_ERROR(device->OpenPools(options));
  return device;
}

PuppetDevice::PuppetDevice(DeviceProperties properties, std::unique_ptr<PuppetExecutor> executor)
    : HostDevice(std::move(properties), std::move(executor)),
      puppet_(static_cast<PuppetExecutor&>(this->executor())) {}

bool PuppetDevice::Step(Stream& stream) { return puppet_.Step(QueueOf(stream)); }

size_t PuppetDevice::RunUntilIdle(Stream& stream) {
  size_t count = 0;
  while (Step(stream)) ++count;
  return count;
}

size_t PuppetDevice::RunAll() {
  size_t count = 0;
  while (puppet_.StepAny()) ++count;
  return count;
}

size_t PuppetDevice::PendingCount(Stream& stream) const { return QueueOf(stream).pending_count(); }

}  // namespace cipherd::runtime::host
