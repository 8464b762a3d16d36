#include "core/runtime/host/host_graph.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/runtime/host/host_device.h"
#include "core/runtime/host/host_stream.h"

namespace cipherd::runtime::host {
namespace {

// The order of recording allows every dependency. In reverse, of the nodes that may run next, the
// one recorded last comes first: a dependency that the capture forgot then shows.
std::vector<GraphNode> InOrder(std::vector<GraphNode> nodes, bool is_reversed) {
  if (!is_reversed) return nodes;
  std::vector<size_t> missing(nodes.size());
  std::vector<std::vector<size_t>> dependents(nodes.size());
  std::priority_queue<size_t> ready;
  for (size_t i = 0; i < nodes.size(); ++i) {
    missing[i] = nodes[i].dependencies.size();
    for (size_t dependency : nodes[i].dependencies) dependents[dependency].push_back(i);
    if (missing[i] == 0) ready.push(i);
  }
  std::vector<GraphNode> ordered;
  ordered.reserve(nodes.size());
  while (!ready.empty()) {
    const size_t next = ready.top();
    ready.pop();
    for (size_t dependent : dependents[next]) {
      if (--missing[dependent] == 0) ready.push(dependent);
    }
    ordered.push_back(std::move(nodes[next]));
  }
  return ordered;
}

LaunchRecords::Events EventsOf(const std::vector<GraphNode>& nodes) {
  LaunchRecords::Events events;
  for (const GraphNode& node : nodes) {
    if (node.event != nullptr) events.push_back(node.event);
  }
  return events;
}

absl::Status RunNodes(const std::vector<GraphNode>& nodes, LaunchRecords& records) {
  size_t record = 0;
  for (const GraphNode& node : nodes) {
    if (node.event != nullptr) {
      records.Pass(record++);
      continue;
    }
    if (absl::Status status = node.run(); !status.ok()) {
      status = absl::Status(
          status.code(), absl::StrCat(std::string(node.name), ": ", std::string(status.message())));
      records.FailRest(status);
      return status;
    }
  }
  return absl::OkStatus();
}

}  // namespace

HostGraph::HostGraph(HostDevice& device, std::vector<GraphNode> nodes, CapturedMemory memory)
    : device_(device),
      nodes_(std::make_shared<const std::vector<GraphNode>>(
          InOrder(std::move(nodes), device.executor().reverses_graphs()))),
      events_(EventsOf(*nodes_)),
      memory_(std::move(memory)) {}

HostGraph::~HostGraph() {
  std::optional<QueuePosition> last_launch;
  {
    std::lock_guard lock(mu_);
    last_launch = last_launch_;
  }
  if (last_launch.has_value()) device_.executor().Await(*last_launch);
}

absl::Status HostGraph::Launch(Stream& stream) {
  auto* const host_stream = dynamic_cast<HostStream*>(&stream);
  if (host_stream == nullptr || &stream.device() != &device_) {
    return absl::InvalidArgumentError("Graph::Launch: the stream is of another device");
  }
  std::shared_ptr<LaunchRecords> records;
  CIPHERD_ASSIGN_OR_RETURN(
      QueuePosition end,
      host_stream->LaunchGraph(
          [&](const QueuePosition& launch_end) -> std::function<absl::Status()> {
            records = std::make_shared<LaunchRecords>(events_, launch_end, device_.shared_health());
            return [nodes = nodes_, records] { return RunNodes(*nodes, *records); };
          }));
  records->Publish();
  std::lock_guard lock(mu_);
  last_launch_ = std::move(end);
  return absl::OkStatus();
}

}  // namespace cipherd::runtime::host
