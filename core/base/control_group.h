// What the process's own control group (version 2) says: the limits of a container, or of a unit.
#pragma once

#include <string>

namespace cipherd::base {

// The text of its file `name` ("memory.max"); empty where there is none.
std::string ReadControlGroupFile(const std::string& name);

}  // namespace cipherd::base
