// absl::Status to exceptions of the package.
//
//   return ValueOrThrow(client::ReadProgramFile(path, policy));   // raises a cipherd.Error
//
// nanobind is told of errors by C++ exceptions; they are thrown in functions that are bound, and
// nowhere below.
#pragma once

#include <nanobind/nanobind.h>

#include <exception>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace cipherd::python {

class StatusError : public std::exception {
 public:
  explicit StatusError(absl::Status status) : status_(std::move(status)) {}
  const absl::Status& status() const { return status_; }
  const char* what() const noexcept override { return "cipherd"; }

 private:
  absl::Status status_;
};

// InvalidArgument "path: what", with the path as detail.
absl::Status InvalidInput(std::string_view path, std::string_view what);

inline void ThrowIfError(const absl::Status& status) {
  if (!status.ok()) throw StatusError(status);
}

template <typename T>
T ValueOrThrow(absl::StatusOr<T> value) {
  ThrowIfError(value.status());
  return *std::move(value);
}

// The exception of `status`, of the class of its code and reason (cipherd/errors.py). With the
// interpreter's lock.
nanobind::object MakeException(const absl::Status& status);

// StatusError becomes that exception.
void RegisterStatusError();

}  // namespace cipherd::python
