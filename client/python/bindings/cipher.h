// Encrypting to bytes and decrypting from them, without a connection.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "client/program_cipher.h"
#include "client/python/bindings/arrays.h"
#include "client/python/bindings/live_calls.h"
#include "core/secret/secret_key.h"

namespace cipherd::python {

// The bytes of a values file (client/files/values_file.h), encrypted inputs of one evaluation.
nanobind::bytes EncryptPayload(const std::shared_ptr<CallOwner>& owner,
                               const client::ProgramCipher& cipher, const InputArrays& inputs);
// From the outputs of one; where `flooding` is given, with noise for others' eyes.
OutputArrays DecryptPayload(const std::shared_ptr<CallOwner>& owner,
                            const client::ProgramCipher& cipher, const nanobind::bytes& payload,
                            const secret::FloodingOptions* flooding);

// A program and a secret key.
class Cipher {
 public:
  Cipher(client::ProgramPtr program, secret::SecretKey secret_key)
      : secret_key_(std::move(secret_key)), cipher_(std::move(program), secret_key_) {}

  const client::ProgramCipher& cipher() const { return cipher_; }

 private:
  const secret::SecretKey secret_key_;
  const client::ProgramCipher cipher_;
};

// Null when closed: the key is wiped.
struct CipherObject {
  std::shared_ptr<CallOwner> owner;
  std::unique_ptr<Cipher> cipher;
};

void BindCipher(nanobind::module_& module);

}  // namespace cipherd::python
