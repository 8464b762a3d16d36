#include "client/files/tensor_files.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/files/npy_array.h"
#include "core/base/atomic_file.h"
#include "core/base/status_macros.h"
#include "proto/codec/payload_reader.h"
#include "proto/codec/signature_codec.h"
#include "proto/codec/tree_admission.h"
#include "proto/codec/wire_limits.h"

namespace cipherd::client {
namespace {

constexpr char kResidueDescr[] = "<u8";

std::span<const uint8_t> BytesOf(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

absl::Status WriteTensor(const std::string& path, const value::Tensor& tensor) {
  CIPHERD_ASSIGN_OR_RETURN(base::AtomicFile file, base::AtomicFile::Create(path, 0644));
  CIPHERD_RETURN_IF_ERROR(file.Write(BytesOf(NpyHeader(kResidueDescr, tensor.shape()))));
  CIPHERD_RETURN_IF_ERROR(
      file.Write({tensor.data_as<const uint8_t>(), static_cast<size_t>(tensor.bytes())}));
  return std::move(file).Commit(base::AtomicFile::Existing::kReplace);
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(absl::StrCat("cannot open '", path, "'"));
  return std::string{std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

absl::Status WriteTensorFiles(const std::string& directory, const std::vector<std::string>& names,
                              const value::ValueTree& values) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) {
    return absl::UnavailableError(
        absl::StrCat("cannot make directory '", directory, "': ", error.message()));
  }
  const std::vector<const value::Tensor*> tensors = value::TensorsOf(values);
  if (tensors.size() != names.size()) {
    return absl::InternalError(absl::StrCat("expected ", names.size(), " values of one tensor"));
  }
  for (size_t i = 0; i < names.size(); ++i) {
    CIPHERD_RETURN_IF_ERROR(
        WriteTensor(absl::StrCat(directory, "/", names[i], ".npy"), *tensors[i]));
  }
  return absl::OkStatus();
}

absl::StatusOr<value::ValueTree> ReadTensorFiles(const std::map<std::string, std::string>& files,
                                                 const std::vector<std::string>& names,
                                                 const execution::ValueTreeSignature& signature,
                                                 const codec::KnownContextPtr& context) {
  v1::ValueTreeSignature description;
  CIPHERD_RETURN_IF_ERROR(codec::EncodeSignature(signature, "values", &description));
  std::vector<std::string> contents;
  std::vector<NpyArray> arrays;
  // Views of what is read before; they must not move.
  contents.reserve(names.size());
  v1::ValueTree tree;
  uint64_t payload_bytes = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    const auto file = files.find(names[i]);
    if (file == files.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", names[i], "': expected a file, got none"));
    }
    CIPHERD_ASSIGN_OR_RETURN(contents.emplace_back(), ReadFile(file->second));
    CIPHERD_ASSIGN_OR_RETURN(arrays.emplace_back(), ParseNpyArray(contents.back(), file->second));
    const NpyArray& array = arrays.back();
    if (array.descr != kResidueDescr) {
      return absl::InvalidArgumentError(absl::StrCat("'", file->second, "': dtype: expected '",
                                                     kResidueDescr, "', got '", array.descr, "'"));
    }
    codec::DescribeAs(description.tuple().children(static_cast<int>(i)).value(), array.shape,
                      array.elements.size(), tree.mutable_tuple()->add_children()->mutable_value());
    payload_bytes += array.elements.size();
  }
  if (files.size() != names.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected ", names.size(), " files, got ", files.size()));
  }
  CIPHERD_ASSIGN_OR_RETURN(codec::AdmittedTree admitted,
                           codec::AdmitTree(tree,
                                            {.contexts = std::span(&context, 1),
                                             .signature = &signature,
                                             .max_payload_bytes = payload_bytes},
                                            {}, "values"));
  CIPHERD_ASSIGN_OR_RETURN(
      codec::PayloadReader reader,
      codec::PayloadReader::Allocate(std::move(admitted), codec::PageableTensors()));
  for (const NpyArray& array : arrays) CIPHERD_RETURN_IF_ERROR(reader.Write(array.elements));
  return std::move(reader).Finish();
}

}  // namespace cipherd::client
