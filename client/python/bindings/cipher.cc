#include "client/python/bindings/cipher.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <span>

#include "client/files/key_directory.h"
#include "client/files/secret_key_file.h"
#include "client/files/values_file.h"
#include "client/python/bindings/interruptible.h"
#include "client/python/bindings/program.h"
#include "client/python/bindings/status_error.h"
#include "core/base/status_macros.h"
#include "core/secret/random.h"

namespace cipherd::python {
namespace {

namespace nb = nanobind;

absl::StatusOr<std::string> Encrypt(const client::ProgramCipher& cipher,
                                    const client::NamedVectors& inputs) {
  client::EncryptedValues values;
  values.program = cipher.program().name;
  for (const auto& [name, items] : inputs) {
    values.item_count = std::max(values.item_count, static_cast<int64_t>(items.size()));
  }
  CIPHERD_ASSIGN_OR_RETURN(secret::Random random, secret::Random::FromOsEntropy());
  CIPHERD_ASSIGN_OR_RETURN(values.tree, cipher.EncryptInputs(inputs, random));
  return client::EncodeValuesFile(values);
}

absl::StatusOr<client::NamedVectors> Decrypt(const client::ProgramCipher& cipher,
                                             std::span<const uint8_t> payload,
                                             const secret::FloodingOptions* flooding) {
  const client::ProgramDescription& program = cipher.program();
  CIPHERD_ASSIGN_OR_RETURN(
      const client::EncryptedValues values,
      client::DecodeValuesFile(payload, "payload", program, program.output_signature, {}));
  if (flooding == nullptr) return cipher.DecryptOutputs(values.tree, values.item_count);
  CIPHERD_ASSIGN_OR_RETURN(secret::Random random, secret::Random::FromOsEntropy());
  return cipher.DecryptOutputsForSharing(values.tree, values.item_count, *flooding, random);
}

std::unique_ptr<CipherObject> Load(const Program& program, const std::string& secret_key_path) {
  auto object = std::make_unique<CipherObject>();
  object->owner = std::make_shared<CallOwner>("cipher", nullptr);
  object->cipher = RunWork(object->owner, [&]() -> absl::StatusOr<std::unique_ptr<Cipher>> {
    CIPHERD_ASSIGN_OR_RETURN(secret::SecretKey secret_key,
                             client::ReadSecretKeyFile(secret_key_path, program.policy));
    return std::make_unique<Cipher>(program.stored.program, std::move(secret_key));
  });
  return object;
}

const client::ProgramCipher& Open(const CipherObject& self) {
  if (self.cipher == nullptr) {
    throw StatusError(absl::FailedPreconditionError("cipher: closed"));
  }
  return self.cipher->cipher();
}

}  // namespace

nb::bytes EncryptPayload(const std::shared_ptr<CallOwner>& owner,
                         const client::ProgramCipher& cipher, const InputArrays& inputs) {
  const client::NamedVectors vectors = ToVectors(inputs);
  const std::string payload = RunWork(owner, [&] { return Encrypt(cipher, vectors); });
  return nb::bytes(payload.data(), payload.size());
}

OutputArrays DecryptPayload(const std::shared_ptr<CallOwner>& owner,
                            const client::ProgramCipher& cipher, const nb::bytes& payload,
                            const secret::FloodingOptions* flooding) {
  const std::span bytes(static_cast<const uint8_t*>(payload.data()), payload.size());
  return ToArrays(RunWork(owner, [&] { return Decrypt(cipher, bytes, flooding); }));
}

void BindCipher(nb::module_& module) {
  nb::class_<secret::FloodingOptions>(module, "FloodingOptions")
      .def(
          "__init__",
          [](secret::FloodingOptions* self, double error_bound, int statistical_bits,
             int64_t result_count) {
            new (self) secret::FloodingOptions{.error_bound = error_bound,
                                               .statistical_bits = statistical_bits,
                                               .result_count = result_count};
          },
          nb::arg("error_bound"), nb::arg("statistical_bits"), nb::arg("result_count"));
  nb::class_<CipherObject>(module, "Cipher")
      .def_static("load", &Load, nb::arg("program"), nb::arg("secret_key_path"))
      .def(
          "encrypt",
          [](const CipherObject& self, const InputArrays& inputs) {
            return EncryptPayload(self.owner, Open(self), inputs);
          },
          nb::arg("inputs"))
      .def(
          "decrypt",
          [](const CipherObject& self, const nb::bytes& payload,
             const secret::FloodingOptions* flooding) {
            return DecryptPayload(self.owner, Open(self), payload, flooding);
          },
          nb::arg("payload"), nb::arg("flooding").none())
      .def("close", [](CipherObject& self) {
        CloseCalls(*self.owner);
        self.cipher.reset();
      });
}

}  // namespace cipherd::python
