// How many processors this process may keep busy.
#pragma once

#include <optional>
#include <string>

namespace cipherd::base {

// The least of what its affinity and the quota of its control group (version 2; that of a
// container, say) leave it, at least 1. A quota of parts of a processor is rounded up. Read at each
// call.
int ProcessorCount();

// Exposed for tests: of the text of a control group's cpu.max ("150000 100000": 2); nothing where
// there is no quota.
std::optional<int> ParseProcessorQuota(const std::string& text);

}  // namespace cipherd::base
