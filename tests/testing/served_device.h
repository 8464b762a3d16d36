// The device of the daemons that tests start.
#pragma once

#include <cstdlib>
#include <string>

namespace cipherd::testing {

// What --device gets: the environment's CIPHERD_TEST_DEVICE ("cuda:0" on a machine with a GPU), or
// "cpu".
inline std::string ServedDevice() {
  const char* device = std::getenv("CIPHERD_TEST_DEVICE");
  return device == nullptr ? "cpu" : device;
}

// What such a daemon says that it runs on.
inline std::string ServedDeviceId() {
  const std::string device = ServedDevice();
  return device == "cpu" ? "cpu:0" : device;
}

}  // namespace cipherd::testing
