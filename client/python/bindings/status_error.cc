#include "client/python/bindings/status_error.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "client/client.h"
#include "proto/codec/error_detail.h"

namespace cipherd::python {

namespace nb = nanobind;

absl::Status InvalidInput(std::string_view path, std::string_view what) {
  return codec::WithErrorDetail(
      absl::InvalidArgumentError(absl::StrCat(std::string(path), ": ", std::string(what))),
      v1::ERROR_REASON_UNSPECIFIED, path);
}

nb::object MakeException(const absl::Status& status) {
  std::string reason;
  std::string path;
  if (const std::optional<v1::ErrorDetail> detail = codec::GetErrorDetail(status)) {
    path = detail->path();
    if (detail->reason() != v1::ERROR_REASON_UNSPECIFIED) {
      const std::string name = v1::ErrorReason_Name(detail->reason());
      reason = std::string(absl::StripPrefix(name, "ERROR_REASON_"));
    }
  }
  std::optional<double> retry_delay;
  if (const std::optional<absl::Duration> delay = client::RetryDelayOf(status)) {
    retry_delay = absl::ToDoubleSeconds(*delay);
  }
  return nb::module_::import_("cipherd.errors")
      .attr("from_status")(absl::StatusCodeToString(status.code()), reason, path,
                           std::string(status.message()), retry_delay);
}

void RegisterStatusError() {
  nb::register_exception_translator([](const std::exception_ptr& pointer, void*) {
    try {
      std::rethrow_exception(pointer);
    } catch (const StatusError& error) {
      const nb::object exception = MakeException(error.status());
      PyErr_SetObject(exception.type().ptr(), exception.ptr());
    }
  });
}

}  // namespace cipherd::python
