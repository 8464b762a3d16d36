#include "server/engine/key_file_head.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/base/checked_math.h"
#include "core/base/sha256.h"
#include "core/ckks/key_set_id.h"

namespace cipherd::engine {
namespace {

constexpr char kMagic[8] = {'C', 'I', 'P', 'H', 'K', 'E', 'Y', 1};
constexpr size_t kDigestBytes = sizeof(base::Sha256Digest);
constexpr int kMaxRank = 8;

absl::Status Damaged(std::string_view what) {
  return absl::DataLossError(absl::StrCat("not a whole file of a key set: ", std::string(what)));
}

void AppendLittleEndian(std::string& out, uint64_t word, int byte_count) {
  for (int i = 0; i < byte_count; ++i) out.push_back(static_cast<char>(word >> (8 * i)));
}

std::string_view AsBytes(const base::Sha256Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

base::Sha256Digest HashOf(std::string_view bytes) {
  return base::Sha256Of({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
}

// Takes fields off the front; after one that is not whole, everything is empty or 0.
class Fields {
 public:
  explicit Fields(std::string_view bytes) : rest_(bytes) {}

  std::string_view Bytes(size_t count) {
    if (count > rest_.size()) {
      is_whole_ = false;
      return {};
    }
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }
  uint64_t LittleEndian(int byte_count) {
    uint64_t word = 0;
    int shift = 0;
    for (char byte : Bytes(static_cast<size_t>(byte_count))) {
      word |= uint64_t{static_cast<uint8_t>(byte)} << shift;
      shift += 8;
    }
    return word;
  }
  bool is_whole() const { return is_whole_; }
  bool is_empty() const { return rest_.empty(); }

 private:
  std::string_view rest_;
  bool is_whole_ = true;
};

std::optional<value::ValueType> KeyTypeOf(uint64_t number) {
  for (value::ValueType type :
       {value::ValueType::kRelinearizationKey, value::ValueType::kRotationKey,
        value::ValueType::kConjugationKey}) {
    if (ckks::KeyTypeNumber(type) == number) return type;
  }
  return std::nullopt;
}

absl::StatusOr<KeyDescription> DecodeKey(Fields& fields) {
  KeyDescription key;
  const std::optional<value::ValueType> type = KeyTypeOf(fields.LittleEndian(1));
  key.id.rotation_step = static_cast<int64_t>(fields.LittleEndian(8));
  const uint64_t rank = fields.LittleEndian(1);
  if (!fields.is_whole() || !type.has_value() || rank > kMaxRank) return Damaged("a key's fields");
  key.id.type = *type;
  for (uint64_t i = 0; i < rank; ++i) {
    key.shape.push_back(static_cast<int64_t>(fields.LittleEndian(8)));
  }
  const std::string_view digest = fields.Bytes(kDigestBytes);
  const std::optional<int64_t> words = base::CheckedElementCount(key.shape);
  // A key has words. (Where one dimension is 0, the others could be of any size.)
  if (!fields.is_whole() || !words.has_value() || *words < 1 || *words > INT64_MAX / 8) {
    return Damaged("a key's shape");
  }
  std::memcpy(key.digest.data(), digest.data(), kDigestBytes);
  return key;
}

}  // namespace

std::string EncodeKeyFileHead(const KeySetInfo& info) {
  std::string head;
  AppendLittleEndian(head, info.tenant.size(), 4);
  head += info.tenant;
  head += absl::HexStringToBytes(info.context_id);
  AppendLittleEndian(head, info.keys.size(), 4);
  for (const KeyDescription& key : info.keys) {
    AppendLittleEndian(head, ckks::KeyTypeNumber(key.id.type), 1);
    AppendLittleEndian(head, static_cast<uint64_t>(key.id.rotation_step), 8);
    AppendLittleEndian(head, key.shape.size(), 1);
    for (int64_t dim : key.shape) AppendLittleEndian(head, static_cast<uint64_t>(dim), 8);
    head += AsBytes(key.digest);
  }
  std::string bytes(kMagic, sizeof(kMagic));
  AppendLittleEndian(bytes, head.size(), 4);
  const base::Sha256Digest digest = HashOf(head);
  bytes += head;
  bytes += AsBytes(digest);
  return bytes;
}

absl::StatusOr<size_t> KeyFileHeadBytes(const std::string& prefix) {
  Fields fields(prefix);
  const std::string_view magic = fields.Bytes(sizeof(kMagic));
  const uint64_t head_bytes = fields.LittleEndian(4);
  if (!fields.is_whole() || magic != std::string_view(kMagic, sizeof(kMagic)) ||
      head_bytes > kMaxKeyFileHeadBytes) {
    return Damaged("its first bytes");
  }
  return static_cast<size_t>(head_bytes) + kDigestBytes;
}

absl::StatusOr<std::shared_ptr<KeySetInfo>> DecodeKeyFileHead(const std::string& rest) {
  if (rest.size() < kDigestBytes) return Damaged("its head");
  const std::string_view head = std::string_view(rest).substr(0, rest.size() - kDigestBytes);
  if (std::string_view(rest).substr(head.size()) != AsBytes(HashOf(head))) {
    return Damaged("the hash of its head");
  }
  Fields fields(head);
  auto info = std::make_shared<KeySetInfo>();
  info->tenant = std::string(fields.Bytes(fields.LittleEndian(4)));
  const std::string context_id(fields.Bytes(kDigestBytes));
  const uint64_t key_count = fields.LittleEndian(4);
  info->context_id = absl::BytesToHexString(context_id);
  ckks::KeySetIdBuilder id(context_id);
  uint64_t total_bytes = 0;
  for (uint64_t i = 0; i < key_count; ++i) {
    absl::StatusOr<KeyDescription> key = DecodeKey(fields);
    if (!key.ok()) return key.status();
    if (!id.Add(key->id, key->digest)) return Damaged("a key twice");
    const std::optional<uint64_t> sum =
        base::CheckedAdd(total_bytes, static_cast<uint64_t>(key->bytes()));
    if (!sum.has_value() || *sum > uint64_t{INT64_MAX}) return Damaged("its size");
    total_bytes = *sum;
    info->keys.push_back(*std::move(key));
  }
  const bool is_sorted =
      std::is_sorted(info->keys.begin(), info->keys.end(),
                     [](const KeyDescription& a, const KeyDescription& b) { return a.id < b.id; });
  if (!fields.is_whole() || !fields.is_empty() || !is_sorted)
    return Damaged("the keys of its head");
  info->bytes = static_cast<int64_t>(total_bytes);
  info->id = base::ToHex(id.Finish());
  return info;
}

}  // namespace cipherd::engine
