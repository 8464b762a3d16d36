// Steps 4 to 10 of value_admission.h: the state that a value claims against its context. Internal
// to the codec.
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "core/value/exact_value.h"
#include "proto/codec/known_context.h"
#include "proto/codec/tensor_plan.h"
#include "proto/codec/value_schema.h"

namespace cipherd::codec::internal {

// Requires that the value has passed step 2: the fields of `schema` are present, and `data` has a
// rank that the schema allows.
absl::Status CheckState(value::ValueType type, const value::ValueMetadata& metadata,
                        const TensorPlan& data, const ValueSchema& schema,
                        const KnownContext& context, std::string_view path);

}  // namespace cipherd::codec::internal
