#include "client/request_split.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "client/slot_layout.h"
#include "core/base/status_macros.h"
#include "proto/codec/error_detail.h"

namespace cipherd::client {
namespace {

absl::Status Refuse(const std::string& path, const std::string& what) {
  return codec::WithErrorDetail(absl::InvalidArgumentError(absl::StrCat(path, ": ", what)),
                                v1::ERROR_REASON_UNSPECIFIED, path);
}

absl::Status CheckNames(const ProgramDescription& program,
                        const std::map<std::string, int64_t>& item_counts) {
  for (const auto& [name, item_count] : item_counts) {
    const bool is_known =
        std::any_of(program.inputs.begin(), program.inputs.end(),
                    [&name = name](const auto& input) { return input.name == name; });
    if (!is_known) {
      return Refuse(absl::StrCat("inputs['", name, "']"),
                    absl::StrCat("program '", program.name, "' has no such input"));
    }
  }
  return absl::OkStatus();
}

// What a daemon states is looked at before memory is counted by it.
absl::Status CheckLayouts(const ProgramDescription& program) {
  const int64_t slot_count = program.context->parameters().slot_count();
  for (const programs::ProgramInput& input : program.inputs) {
    CIPHERD_RETURN_IF_ERROR(
        CheckLayout(input.layout, slot_count, absl::StrCat("inputs['", input.name, "']")));
  }
  for (const programs::ProgramOutput& output : program.outputs) {
    CIPHERD_RETURN_IF_ERROR(
        CheckLayout(output.layout, slot_count, absl::StrCat("outputs['", output.name, "']")));
  }
  return absl::OkStatus();
}

}  // namespace

int64_t RequestSplit::End(int64_t request) const {
  return std::min(item_count, Begin(request) + items_per_request);
}

bool GoesWithEveryRequest(const ProgramDescription& program, const programs::ProgramInput& input) {
  return input.layout.item_count == 1 &&
         std::any_of(program.inputs.begin(), program.inputs.end(),
                     [](const auto& other) { return other.layout.item_count > 1; });
}

int64_t ItemsPerRequest(const ProgramDescription& program) {
  int64_t items_per_request = 0;
  for (const programs::ProgramInput& input : program.inputs) {
    if (GoesWithEveryRequest(program, input)) continue;
    items_per_request = items_per_request == 0
                            ? input.layout.item_count
                            : std::min(items_per_request, input.layout.item_count);
  }
  return items_per_request;
}

absl::StatusOr<RequestSplit> SplitIntoRequests(const ProgramDescription& program,
                                               const std::map<std::string, int64_t>& item_counts) {
  CIPHERD_RETURN_IF_ERROR(CheckLayouts(program));
  CIPHERD_RETURN_IF_ERROR(CheckNames(program, item_counts));
  RequestSplit split = {.items_per_request = ItemsPerRequest(program)};
  std::string first_name;
  for (const programs::ProgramInput& input : program.inputs) {
    const std::string path = absl::StrCat("inputs['", input.name, "']");
    const auto found = item_counts.find(input.name);
    if (found == item_counts.end()) return Refuse(path, "missing");
    const int64_t item_count = found->second;
    if (item_count < 1) return Refuse(path, "expected at least one item, got none");
    if (GoesWithEveryRequest(program, input)) {
      if (item_count == 1) continue;
      return Refuse(
          path, absl::StrCat("expected one item, which goes with every request, got ", item_count));
    }
    if (first_name.empty()) {
      first_name = input.name;
      split.item_count = item_count;
    }
    if (item_count != split.item_count) {
      return Refuse(path, absl::StrCat("expected ", split.item_count, " items, as inputs['",
                                       first_name, "'] has, got ", item_count));
    }
  }
  if (split.request_count() == 1) return split;
  for (const programs::ProgramOutput& output : program.outputs) {
    if (output.layout.item_count < split.items_per_request) {
      return Refuse(
          absl::StrCat("outputs['", output.name, "']"),
          absl::StrCat("has ", output.layout.item_count, " items for ", split.items_per_request,
                       " of the inputs: expected at most ", split.items_per_request,
                       " items at once, got ", split.item_count));
    }
  }
  return split;
}

}  // namespace cipherd::client
