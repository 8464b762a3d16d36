// How many requests an evaluation of many items takes.
//
//   // 20 images, eight in a ciphertext: three requests of 8, 8 and 4.
//   ASSIGN_OR_RETURN(RequestSplit split, SplitIntoRequests(*program, {{"images", 20}}));
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "client/program_description.h"

namespace cipherd::client {

struct RequestSplit {
  // Of the whole evaluation.
  int64_t item_count = 0;
  int64_t items_per_request = 0;

  int64_t request_count() const { return (item_count + items_per_request - 1) / items_per_request; }
  // The items of request r: [Begin(r), End(r)).
  int64_t Begin(int64_t request) const { return request * items_per_request; }
  int64_t End(int64_t request) const;
};

// Whether `input` goes with every request as it is: its layout has one place, others have more.
bool GoesWithEveryRequest(const ProgramDescription& program, const programs::ProgramInput& input);

// Items that the ciphertexts of one request hold: places of the input that has the fewest, of those
// that do not go with every request.
int64_t ItemsPerRequest(const ProgramDescription& program);

// `item_counts` by input. All inputs have the same number of items, but for those that go with
// every request and have one. InvalidArgument naming the input that is missing, unknown, empty or
// of another count; or the output that has no place for every item, where one request does not do:
// what it holds then depends on the split.
absl::StatusOr<RequestSplit> SplitIntoRequests(const ProgramDescription& program,
                                               const std::map<std::string, int64_t>& item_counts);

}  // namespace cipherd::client
