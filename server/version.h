// Which build this is.
#pragma once

namespace cipherd::server {

// Set by CMake from the project's version.
inline constexpr char kVersion[] = CIPHERD_VERSION;

}  // namespace cipherd::server
