// A captured schedule of closures. A launch is one task of the launching stream, which runs the
// nodes one after another in an order that their dependencies allow.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "core/runtime/capture.h"
#include "core/runtime/graph.h"
#include "core/runtime/host/host_event.h"
#include "core/runtime/host/launch_records.h"
#include "core/runtime/host/task_queue.h"

namespace cipherd::runtime::host {

class HostDevice;

struct GraphNode {
  std::string_view name;
  std::function<absl::Status()> run = nullptr;
  // In place of `run`: what a launch records here.
  std::shared_ptr<HostEvent> event = nullptr;
  // Indices of earlier nodes.
  std::vector<size_t> dependencies = {};
};

class HostGraph final : public Graph {
 public:
  HostGraph(HostDevice& device, std::vector<GraphNode> nodes, CapturedMemory memory);
  ~HostGraph() override;

  absl::Status Launch(Stream& stream) override;
  absl::Status CheckLiveness() const override { return memory_.CheckLiveness(); }
  size_t node_count() const override { return nodes_->size() - events_.size(); }
  size_t pool_bytes() const override { return memory_.pool->bytes(); }
  void* native_handle() const override { return nullptr; }

 private:
  HostDevice& device_;
  // In the order of execution. Shared with launches in flight.
  const std::shared_ptr<const std::vector<GraphNode>> nodes_;
  // Those that nodes record, in their order.
  const LaunchRecords::Events events_;
  const CapturedMemory memory_;

  std::mutex mu_;
  // Launches do not overlap, so that the last one covers all.
  std::optional<QueuePosition> last_launch_ ABSL_GUARDED_BY(mu_);
};

}  // namespace cipherd::runtime::host
