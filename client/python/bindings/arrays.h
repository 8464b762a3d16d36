// NumPy arrays to items and back.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <map>
#include <string>

#include "client/bulk_evaluation.h"
#include "client/program_cipher.h"

namespace cipherd::python {

// One row an item; the package's Python side has made them so.
using InputArray =
    nanobind::ndarray<const double, nanobind::ndim<2>, nanobind::c_contig, nanobind::device::cpu>;
using InputArrays = std::map<std::string, InputArray>;

// Views that keep the arrays alive. With the interpreter's lock.
std::map<std::string, client::ItemsView> ToItems(const InputArrays& inputs);
// Copies.
client::NamedVectors ToVectors(const InputArrays& inputs);

// float64, one row an item.
using OutputArray = nanobind::ndarray<nanobind::numpy, double, nanobind::ndim<2>>;
using OutputArrays = std::map<std::string, OutputArray>;

OutputArrays ToArrays(std::map<std::string, client::ItemsArray> outputs);
OutputArrays ToArrays(const client::NamedVectors& outputs);
OutputArray ToArray(client::ItemsArray items);

}  // namespace cipherd::python
