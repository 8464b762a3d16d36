// The recorder of a capture on a host device: nodes, and the streams that take part.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "core/runtime/capture.h"
#include "core/runtime/host/host_graph.h"

namespace cipherd::runtime::host {

class HostStream;

// Used by the thread that submits to the streams of the capture; one thread at a time.
class HostCapture final : public Capture {
 public:
  using Capture::Capture;

  // `stream` takes part from now on, ordered after `tail`.
  void AddStream(HostStream& stream, size_t member, std::vector<size_t> tail);
  void RemoveStream(size_t member);
  // Streams that still take part.
  std::vector<HostStream*> streams() const;

  // Records a node behind the work of `member`.
  void AddNode(size_t member, std::string_view name, std::function<absl::Status()> run);
  // Records that each launch records `event` there.
  void AddRecord(size_t member, std::shared_ptr<HostEvent> event);
  const std::vector<size_t>& tail(size_t member) const { return streams_[member].tail; }
  void AddToTail(size_t member, const std::vector<size_t>& nodes);

  std::vector<GraphNode> TakeNodes() { return std::move(nodes_); }

 private:
  void Append(size_t member, GraphNode node);

  struct Participant {
    HostStream* stream = nullptr;
    // What the next node depends on.
    std::vector<size_t> tail;
  };

  std::vector<Participant> streams_;  // by member
  std::vector<GraphNode> nodes_;
};

}  // namespace cipherd::runtime::host
