#include "core/runtime/host/host_capture.h"

#include <algorithm>

namespace cipherd::runtime::host {

void HostCapture::AddStream(HostStream& stream, size_t member, std::vector<size_t> tail) {
  if (streams_.size() <= member) streams_.resize(member + 1);
  streams_[member] = {&stream, std::move(tail)};
}

void HostCapture::RemoveStream(size_t member) {
  RemoveMember(member);
  streams_[member].stream = nullptr;
}

std::vector<HostStream*> HostCapture::streams() const {
  std::vector<HostStream*> present;
  for (const Participant& participant : streams_) {
    if (participant.stream != nullptr) present.push_back(participant.stream);
  }
  return present;
}

void HostCapture::AddNode(size_t member, std::string_view name, std::function<absl::Status()> run) {
  Append(member, {.name = name, .run = std::move(run)});
}

void HostCapture::AddRecord(size_t member, std::shared_ptr<HostEvent> event) {
  Append(member, {.name = "record", .event = std::move(event)});
}

void HostCapture::Append(size_t member, GraphNode node) {
  AddWork(member);
  std::vector<size_t>& tail = streams_[member].tail;
  node.dependencies = tail;
  nodes_.push_back(std::move(node));
  tail.assign(1, nodes_.size() - 1);
}

void HostCapture::AddToTail(size_t member, const std::vector<size_t>& nodes) {
  std::vector<size_t>& tail = streams_[member].tail;
  for (size_t node : nodes) {
    if (std::find(tail.begin(), tail.end(), node) == tail.end()) tail.push_back(node);
  }
}

}  // namespace cipherd::runtime::host
