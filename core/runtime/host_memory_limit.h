// How much memory this machine, or the container around this process, has left.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace cipherd::runtime {

// Bytes that the process can take without the system having to swap or end somebody: the least of
// what the kernel estimates as available and what the process's control group has left. Nothing
// where neither can be read.
std::optional<size_t> AvailableHostBytes();

// The same from the text of /proc/meminfo, and of a control group's memory.max and memory.current.
// Nothing where it says nothing, or "max".
std::optional<size_t> ParseMemAvailable(const std::string& meminfo);
std::optional<size_t> ParseGroupHeadroom(const std::string& max, const std::string& current);

}  // namespace cipherd::runtime
