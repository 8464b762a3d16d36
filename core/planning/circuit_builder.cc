#include "core/planning/circuit_builder.h"

#include <cstring>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "core/programs/names.h"

namespace cipherd::planning {
namespace {

// Room for "_" and the number that makes a name unique.
constexpr size_t kMaxBaseBytes = programs::kMaxEdgeNameBytes - 8;

// Of the edges that lead to an inner sum.
constexpr std::string_view kPartSuffix = "_part";

std::string LawfulBase(std::string_view base) {
  std::string lawful(base.substr(0, kMaxBaseBytes));
  for (char& c : lawful) {
    if (!programs::IsEdgeNameCharacter(c)) c = '_';
  }
  return lawful;
}

std::string_view BytesOf(const value::Tensor& tensor) {
  return {tensor.data_as<const char>(), static_cast<size_t>(tensor.bytes())};
}

int64_t Modulo(int64_t number, int64_t modulus) {
  const int64_t remainder = number % modulus;
  return remainder < 0 ? remainder + modulus : remainder;
}

// An empty tensor where memory is exhausted.
value::Tensor HostTensor(value::DType dtype, std::vector<int64_t> shape, const void* numbers) {
  absl::StatusOr<value::Tensor> tensor = value::Tensor::AllocateHost(dtype, std::move(shape));
  if (!tensor.ok()) return {};
  if (tensor->bytes() > 0) std::memcpy(tensor->data(), numbers, tensor->bytes());
  return *std::move(tensor);
}

// Whether every row of `length` numbers, a power of two, is its first half twice, bit for bit.
bool RowsRepeat(const std::vector<double>& numbers, int64_t length) {
  if (length < 2) return false;
  const int64_t half_bytes = length / 2 * sizeof(double);
  for (size_t row = 0; row < numbers.size(); row += length) {
    const double* first = numbers.data() + row;
    if (std::memcmp(first, first + length / 2, half_bytes) != 0) return false;
  }
  return true;
}

void KeepFirstHalves(std::vector<double>& numbers, int64_t length) {
  const int64_t half = length / 2;
  for (size_t row = 0; row < numbers.size(); row += length) {
    std::memmove(numbers.data() + row / 2, numbers.data() + row, half * sizeof(double));
  }
  numbers.resize(numbers.size() / 2);
}

}  // namespace

CircuitBuilder::CircuitBuilder(std::string name, int64_t position_count) {
  circuit_.name = std::move(name);
  circuit_.position_count = position_count;
}

std::string CircuitBuilder::Input(CircuitInput input) {
  circuit_.inputs.push_back(std::move(input));
  names_.insert(circuit_.inputs.back().name);
  return circuit_.inputs.back().name;
}

std::string CircuitBuilder::Input(std::string name, int64_t element_count, double magnitude_bound) {
  return Input({.name = std::move(name),
                .element_count = element_count,
                .magnitude_bound = magnitude_bound});
}

std::string CircuitBuilder::Add(std::string_view a, std::string_view b, std::string_view base) {
  return Append({std::string(base), CircuitKind::kAdd, std::string(a), std::string(b)});
}

std::string CircuitBuilder::Subtract(std::string_view a, std::string_view b,
                                     std::string_view base) {
  return Append({std::string(base), CircuitKind::kSubtract, std::string(a), std::string(b)});
}

std::string CircuitBuilder::Negate(std::string_view a, std::string_view base) {
  return Append({std::string(base), CircuitKind::kNegate, std::string(a)});
}

std::string CircuitBuilder::Multiply(std::string_view a, std::string_view b,
                                     std::string_view base) {
  return Append({std::string(base), CircuitKind::kMultiply, std::string(a), std::string(b)});
}

std::string CircuitBuilder::Square(std::string_view a, std::string_view base) {
  return Append({std::string(base), CircuitKind::kSquare, std::string(a)});
}

std::string CircuitBuilder::Rotate(std::string_view a, int64_t step, std::string_view base) {
  if (step % circuit_.position_count == 0) return std::string(a);
  return Append(
      {.name = std::string(base), .kind = CircuitKind::kRotate, .a = std::string(a), .step = step});
}

std::string CircuitBuilder::AddPlain(std::string_view a, std::span<const double> values,
                                     std::string_view base) {
  return AppendPlain(CircuitKind::kAddPlain, a, values, base);
}

std::string CircuitBuilder::AddPlain(std::string_view a, double value, std::string_view base) {
  return AppendPlain(CircuitKind::kAddPlain, a, {&value, 1}, base);
}

std::string CircuitBuilder::SubtractPlain(std::string_view a, std::span<const double> values,
                                          std::string_view base) {
  return AppendPlain(CircuitKind::kSubtractPlain, a, values, base);
}

std::string CircuitBuilder::MultiplyPlain(std::string_view a, std::span<const double> values,
                                          std::string_view base) {
  return AppendPlain(CircuitKind::kMultiplyPlain, a, values, base);
}

std::string CircuitBuilder::MultiplyPlain(std::string_view a, double value, std::string_view base) {
  return AppendPlain(CircuitKind::kMultiplyPlain, a, {&value, 1}, base);
}

std::string CircuitBuilder::LinearTransform(std::string_view a, std::span<const double> diagonals,
                                            std::span<const int64_t> offsets,
                                            std::string_view base) {
  std::vector<int64_t> reduced;
  for (const int64_t offset : offsets) reduced.push_back(Modulo(offset, circuit_.position_count));
  const int64_t count = static_cast<int64_t>(reduced.size());

  const std::string name = NewName(base, CircuitKind::kLinearTransform);
  CircuitOperation operation = {
      .name = name, .kind = CircuitKind::kLinearTransform, .a = std::string(a)};
  operation.constant =
      StoreRows(absl::StrCat(name, ".diagonals"), diagonals, count, /*is_matrix=*/true);
  operation.offsets = Store(absl::StrCat(name, ".offsets"),
                            HostTensor(value::DType::kInt64, {count}, reduced.data()));
  circuit_.operations.push_back(std::move(operation));
  return name;
}

std::string CircuitBuilder::InnerSum(std::string_view a, int64_t count, int64_t stride,
                                     std::string_view base) {
  if (count <= 1) return std::string(a);
  const std::string name(base.empty() ? std::string_view("inner_sum") : base);
  const std::string part =
      absl::StrCat(name.substr(0, kMaxBaseBytes - kPartSuffix.size()), std::string(kPartSuffix));
  return AppendInnerSum(a, count, Modulo(stride, circuit_.position_count), name, part);
}

std::string CircuitBuilder::AppendInnerSum(std::string_view a, int64_t count, int64_t stride,
                                           const std::string& name, const std::string& part) {
  if (count == 1) return std::string(a);
  const int64_t half = (count + 1) / 2;
  const std::string window = AppendInnerSum(a, half, stride, part, part);
  if (count % 2 == 0) return Add(window, Rotate(window, half * stride, part), name);
  const std::string rest = Subtract(window, a, part);
  return Add(window, Rotate(rest, (half - 1) * stride, part), name);
}

std::string CircuitBuilder::Mask(std::string_view a, std::span<const int64_t> positions,
                                 std::string_view base) {
  std::vector<double> values(circuit_.position_count, 0.0);
  for (const int64_t position : positions) values[Modulo(position, circuit_.position_count)] = 1;
  return MultiplyPlain(a, values, base.empty() ? std::string_view("mask") : base);
}

Circuit CircuitBuilder::Build() && { return std::move(circuit_); }

std::string CircuitBuilder::NewName(std::string_view base, CircuitKind kind) {
  const std::string stem = LawfulBase(base.empty() ? ToString(kind) : base);
  std::string name = stem;
  for (int64_t& number = last_numbers_.try_emplace(stem, 1).first->second;
       !names_.insert(name).second;) {
    name = absl::StrCat(stem, "_", ++number);
  }
  return name;
}

std::string CircuitBuilder::Append(CircuitOperation operation) {
  operation.name = NewName(operation.name, operation.kind);
  circuit_.operations.push_back(std::move(operation));
  return circuit_.operations.back().name;
}

std::string CircuitBuilder::AppendPlain(CircuitKind kind, std::string_view a,
                                        std::span<const double> values, std::string_view base) {
  const std::string name = NewName(base, kind);
  CircuitOperation operation = {.name = name, .kind = kind, .a = std::string(a)};
  operation.constant = StoreRows(absl::StrCat(name, ".values"), values, 1, /*is_matrix=*/false);
  circuit_.operations.push_back(std::move(operation));
  return name;
}

std::string CircuitBuilder::StoreRows(std::string name, std::span<const double> numbers,
                                      int64_t rows, bool is_matrix) {
  std::vector<double> kept(numbers.begin(), numbers.end());
  const int64_t number_count = static_cast<int64_t>(numbers.size());
  // Rows of unequal lengths are stored as one: CheckCircuit refuses them.
  const bool has_rows = rows > 0 && number_count % rows == 0;
  int64_t length = has_rows ? number_count / rows : number_count;
  const bool is_lawful =
      has_rows && length > 0 && (length & (length - 1)) == 0 && length <= circuit_.position_count;
  while (is_lawful && RowsRepeat(kept, length)) {
    KeepFirstHalves(kept, length);
    length /= 2;
  }
  const std::vector<int64_t> shape =
      is_matrix && has_rows ? std::vector<int64_t>{rows, length} : std::vector<int64_t>{length};
  return Store(std::move(name), HostTensor(value::DType::kFloat64, shape, kept.data()));
}

std::string CircuitBuilder::Store(std::string name, value::Tensor tensor) {
  const size_t hash = std::hash<std::string_view>()(BytesOf(tensor));
  const auto [first, last] = constants_by_hash_.equal_range(hash);
  for (auto entry = first; entry != last; ++entry) {
    const value::Tensor& stored = circuit_.constants.find(entry->second)->second;
    if (stored.dtype() == tensor.dtype() && stored.shape() == tensor.shape() &&
        BytesOf(stored) == BytesOf(tensor)) {
      return entry->second;
    }
  }
  constants_by_hash_.emplace(hash, name);
  circuit_.constants.emplace(name, std::move(tensor));
  return name;
}

}  // namespace cipherd::planning
