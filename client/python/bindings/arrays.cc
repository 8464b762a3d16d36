#include "client/python/bindings/arrays.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace cipherd::python {
namespace {

namespace nb = nanobind;

OutputArray ToArray(std::vector<double> numbers, int64_t item_count, int64_t element_count) {
  auto owned = std::make_unique<std::vector<double>>(std::move(numbers));
  double* const data = owned->data();
  const nb::capsule owner(owned.release(), [](void* pointer) noexcept {
    delete static_cast<std::vector<double>*>(pointer);
  });
  const size_t shape[] = {static_cast<size_t>(item_count), static_cast<size_t>(element_count)};
  return OutputArray(data, 2, shape, owner);
}

}  // namespace

std::map<std::string, client::ItemsView> ToItems(const InputArrays& inputs) {
  std::map<std::string, client::ItemsView> items;
  for (const auto& [name, array] : inputs) {
    std::shared_ptr<const void> owner(new InputArray(array), [](const InputArray* held) {
      const nb::gil_scoped_acquire gil;
      // Where the interpreter has ended, there is nothing to give back.
      if (gil) delete held;
    });
    items[name] = {.numbers = array.data(),
                   .item_count = static_cast<int64_t>(array.shape(0)),
                   .element_count = static_cast<int64_t>(array.shape(1)),
                   .owner = std::move(owner)};
  }
  return items;
}

client::NamedVectors ToVectors(const InputArrays& inputs) {
  client::NamedVectors vectors;
  for (const auto& [name, array] : inputs) {
    client::Vectors& rows = vectors[name];
    for (size_t k = 0; k < array.shape(0); ++k) {
      const double* const row = array.data() + k * array.shape(1);
      rows.emplace_back(row, row + array.shape(1));
    }
  }
  return vectors;
}

OutputArrays ToArrays(std::map<std::string, client::ItemsArray> outputs) {
  OutputArrays arrays;
  for (auto& [name, items] : outputs) {
    arrays[name] = ToArray(std::move(items));
  }
  return arrays;
}

OutputArrays ToArrays(const client::NamedVectors& outputs) {
  OutputArrays arrays;
  for (const auto& [name, vectors] : outputs) {
    const size_t element_count = vectors.empty() ? 0 : vectors[0].size();
    std::vector<double> numbers;
    for (const std::vector<double>& vector : vectors) {
      numbers.insert(numbers.end(), vector.begin(), vector.end());
    }
    arrays[name] = ToArray(std::move(numbers), static_cast<int64_t>(vectors.size()),
                           static_cast<int64_t>(element_count));
  }
  return arrays;
}

OutputArray ToArray(client::ItemsArray items) {
  return ToArray(std::move(items.numbers), items.item_count, items.element_count);
}

}  // namespace cipherd::python
