#include "server/token_keys.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "openssl/err.h"
#include "openssl/pem.h"
#include "server/openssl_handles.h"

namespace cipherd::server {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".pem";
// What RFC 7518 asks for.
constexpr int kMinRsaBits = 2048;

constexpr std::string_view kRsaAlgorithms[] = {"RS256", "RS384", "RS512"};
// RFC 7518 ties each curve to one hash; a library that is told "ES256" takes any curve.
constexpr std::string_view kP256Algorithms[] = {"ES256"};
constexpr std::string_view kP384Algorithms[] = {"ES384"};
constexpr std::string_view kP521Algorithms[] = {"ES512"};

absl::Status Refuse(const std::string& file, std::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(
      "tokens.keys: ", file, ": expected one PEM public key, got ", std::string(what)));
}

// None for a key that no token may be signed with.
std::span<const std::string_view> AlgorithmsOf(const EVP_PKEY* key) {
  if (EVP_PKEY_is_a(key, "RSA") == 1) {
    if (EVP_PKEY_get_bits(key) < kMinRsaBits) return {};
    return kRsaAlgorithms;
  }
  if (EVP_PKEY_is_a(key, "EC") != 1) return {};
  char curve[32] = {};
  if (EVP_PKEY_get_group_name(key, curve, sizeof(curve), nullptr) != 1) return {};
  const std::string_view name = curve;
  if (name == "prime256v1") return kP256Algorithms;
  if (name == "secp384r1") return kP384Algorithms;
  if (name == "secp521r1") return kP521Algorithms;
  return {};
}

absl::StatusOr<std::string> ReadBounded(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(TokenKeys::kMaxFileBytes + 1, '\0');
  // A directory can be opened, and not read.
  if (!file || (!file.read(text.data(), static_cast<std::streamsize>(text.size())) &&
                (file.bad() || !file.eof()))) {
    return absl::NotFoundError(absl::StrCat("tokens.keys: cannot read ", path));
  }
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.size() > TokenKeys::kMaxFileBytes) {
    return Refuse(path, absl::StrCat("more than ", TokenKeys::kMaxFileBytes, " bytes"));
  }
  return text;
}

KeyPtr NextPublicKey(BIO* bio) {
  return KeyPtr(PEM_read_bio_PUBKEY(bio, nullptr, &NoPassphrase, nullptr));
}

absl::StatusOr<TokenKey> ReadKey(const std::string& path) {
  CIPHERD_ASSIGN_OR_RETURN(const std::string text, ReadBounded(path));
  const BioPtr bio = OpenBytes(text);
  const KeyPtr key = NextPublicKey(bio.get());
  const KeyPtr second = key == nullptr ? nullptr : NextPublicKey(bio.get());
  ERR_clear_error();
  if (text.find("PRIVATE KEY") != std::string::npos) {
    return Refuse(path, "a private key, which has no business here");
  }
  if (key == nullptr) return Refuse(path, "something else");
  if (second != nullptr) return Refuse(path, "several");
  TokenKey result{.pem = "", .algorithms = AlgorithmsOf(key.get())};
  if (result.algorithms.empty()) {
    return Refuse(path,
                  "one that is neither RSA with 2048 bits or more nor EC on P-256, P-384 or P-521");
  }
  const BioPtr out(BIO_new(BIO_s_mem()));
  char* bytes = nullptr;
  if (PEM_write_bio_PUBKEY(out.get(), key.get()) != 1) return Refuse(path, "something else");
  const long size = BIO_get_mem_data(out.get(), &bytes);
  result.pem.assign(bytes, static_cast<size_t>(size));
  return result;
}

}  // namespace

std::vector<std::string> TokenKeys::Files(const std::string& path, std::error_code& error) {
  const bool is_directory = fs::is_directory(path, error);
  // Whoever reads it says what is wrong with it.
  error.clear();
  if (!is_directory) return {path};
  std::vector<std::string> files;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (name.starts_with('.') || !name.ends_with(kSuffix)) continue;
    files.push_back(entry->path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

absl::StatusOr<TokenKeys> TokenKeys::Read(const std::string& path) {
  TokenKeys result;
  std::error_code error;
  result.are_named_ = fs::is_directory(path, error);
  const std::vector<std::string> files = Files(path, error);
  if (error) {
    return absl::NotFoundError(
        absl::StrCat("tokens.keys: cannot list ", path, ": ", error.message()));
  }
  if (files.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("tokens.keys: ", path, ": expected a file KID.pem for each key, got none"));
  }
  if (files.size() > kMaxKeys) {
    return absl::InvalidArgumentError(absl::StrCat("tokens.keys: ", path, ": expected at most ",
                                                   kMaxKeys, " keys, got ", files.size()));
  }
  for (const std::string& file : files) {
    CIPHERD_ASSIGN_OR_RETURN(TokenKey key, ReadKey(file));
    result.keys_.emplace(result.are_named_ ? fs::path(file).stem().string() : "", std::move(key));
  }
  return result;
}

const TokenKey* TokenKeys::Find(std::optional<std::string_view> kid) const {
  if (!kid.has_value() || !are_named_) {
    return keys_.size() == 1 ? &keys_.begin()->second : nullptr;
  }
  const auto found = keys_.find(*kid);
  return found == keys_.end() ? nullptr : &found->second;
}

std::vector<std::string> TokenKeys::names() const {
  std::vector<std::string> names;
  for (const auto& [name, key] : keys_) names.push_back(name);
  return names;
}

}  // namespace cipherd::server
