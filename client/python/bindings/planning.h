// Models to programs, in this process (client/planning).
#pragma once

#include <nanobind/nanobind.h>

namespace cipherd::python {

void BindPlanning(nanobind::module_& module);

}  // namespace cipherd::python
