// How messages, logs and labels show a program that a peer has named.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cipherd::engine {

// Of bounded length and without control characters: a peer's megabytes do not come back.
std::string ShownName(std::string_view name);

// " version 3", or nothing for 0, which names none.
std::string ShownVersion(int64_t version);

}  // namespace cipherd::engine
