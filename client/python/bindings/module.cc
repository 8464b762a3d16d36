// The extension behind the package: cipherd/*.py give it its form and its documentation.
#include <nanobind/nanobind.h>

#include "client/python/bindings/cipher.h"
#include "client/python/bindings/client.h"
#include "client/python/bindings/live_calls.h"
#include "client/python/bindings/planning.h"
#include "client/python/bindings/program.h"
#include "client/python/bindings/session.h"
#include "client/python/bindings/status_error.h"

namespace nb = nanobind;

NB_MODULE(_cipherd, module) {
  module.doc() = "The C++ client of cipherd; for the package's own use.";
  cipherd::python::RegisterStatusError();
  cipherd::python::BindProgram(module);
  cipherd::python::BindPlanning(module);
  cipherd::python::BindCipher(module);
  cipherd::python::BindClient(module);
  cipherd::python::BindSession(module);
  nb::module_::import_("atexit").attr("register")(
      nb::cpp_function(&cipherd::python::CloseAllCalls));
}
