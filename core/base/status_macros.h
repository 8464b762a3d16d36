// Propagation of absl::Status: the two macros that every fallible function of this project uses.
//
//   CIPHERD_RETURN_IF_ERROR(stream.Wait(event));
//   CIPHERD_ASSIGN_OR_RETURN(std::shared_ptr<Event> event, device.CreateEvent());
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Returns the status of `expression` from the enclosing function unless it is OK.
#define CIPHERD_RETURN_IF_ERROR(expression)                 \
  do {                                                      \
    if (absl::Status status_macro_value = (expression);     \
        !status_macro_value.ok()) {                         \
      return status_macro_value;                            \
    }                                                       \
  } while (false)

#define CIPHERD_STATUS_CONCAT_INNER(a, b) a##b
#define CIPHERD_STATUS_CONCAT(a, b) CIPHERD_STATUS_CONCAT_INNER(a, b)

#define CIPHERD_ASSIGN_OR_RETURN_INNER(result, lhs, expression) \
  auto result = (expression);                                   \
  if (!result.ok()) return std::move(result).status();          \
  lhs = *std::move(result)

// Assigns the value of a StatusOr `expression` to `lhs` (which may declare a variable), or returns
// its status from the enclosing function.
#define CIPHERD_ASSIGN_OR_RETURN(lhs, expression) \
  CIPHERD_ASSIGN_OR_RETURN_INNER(CIPHERD_STATUS_CONCAT(status_or_, __LINE__), lhs, expression)
