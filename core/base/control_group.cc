#include "core/base/control_group.h"

#include <fstream>
#include <iterator>

namespace cipherd::base {

std::string ReadControlGroupFile(const std::string& name) {
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (line.rfind("0::", 0) != 0) continue;
    std::ifstream file("/sys/fs/cgroup" + line.substr(3) + "/" + name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  return "";
}

}  // namespace cipherd::base
