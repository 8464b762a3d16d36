// Seeds of targets that read files. The hash at the end of some is put there by their targets.
#include <zlib.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "client/files/file_writer.h"
#include "client/files/npy_array.h"
#include "client/files/values_file.h"
#include "core/base/sha256.h"
#include "proto/codec/context_codec.h"
#include "proto/codec/key_set_id.h"
#include "proto/codec/tree_encoder.h"
#include "server/engine/key_file_head.h"
#include "tests/codec/wire_values.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/key_set_seed.h"
#include "tests/fuzz/seeds.h"
#include "tests/fuzz/service_program.h"

namespace cipherd::fuzz {
namespace {

using client::FileWriter;
using testing::SmallContext;
using value::ValueTree;

std::string WithoutHash(std::string file) {
  file.resize(file.size() - sizeof(base::Sha256Digest));
  return file;
}

ValueTree OneCiphertext() {
  return ValueTree::Tuple({ValueTree::Value(testing::MakeCiphertext(*SmallContext(), 1))});
}

std::string KeySetFile() {
  files::FileHeader header;
  header.mutable_key_set()->set_context_id(SmallContext()->id_bytes());
  const std::vector<value::ExactValue> keys = SeedKeys();
  header.mutable_key_set()->set_key_count(static_cast<uint32_t>(keys.size()));
  FileWriter file = FileWriter::InMemory(header).value();
  for (const value::ExactValue& key : keys) {
    v1::ExactValue description;
    codec::PayloadSource payload = codec::EncodeValue(key, "key", &description).value();
    Require(file.WriteMessage(description).ok() && file.WritePayload(std::move(payload)).ok(),
            "a key is written");
  }
  return WithoutHash(std::move(file).TakeBytes());
}

std::string SecretKeyFile() {
  files::FileHeader header;
  codec::EncodeContext(SmallContext()->parameters(),
                       header.mutable_secret_key()->mutable_context());
  FileWriter file = FileWriter::InMemory(header).value();
  std::vector<uint8_t> coefficients(16, 1);
  coefficients[3] = 0;
  coefficients[5] = 0xff;
  Require(file.WriteBytes(coefficients).ok(), "a key is written");
  return WithoutHash(std::move(file).TakeBytes());
}

std::string ProgramFile() {
  files::FileHeader header;
  *header.mutable_program() = ServiceProgramDescription();
  return WithoutHash(FileWriter::InMemory(header).value().TakeBytes());
}

// Without the hash at its end.
std::string KeyFileHead() {
  engine::KeySetInfo info;
  info.tenant = "alice";
  info.context_id = SmallContext()->id();
  for (const value::ExactValue& key : SeedKeys()) {
    info.keys.push_back({.id = codec::KeyIdOf(key, "key").value(),
                         .shape = key.tensors[0].second.shape(),
                         .digest = codec::PayloadDigest(key, "key").value()});
  }
  return WithoutHash(engine::EncodeKeyFileHead(info));
}

std::string Safetensors() {
  const std::string header =
      R"({"w":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},)"
      R"("o":{"dtype":"I64","shape":[1],"data_offsets":[16,24]},"__metadata__":{"a":"b"}})";
  std::string file(8, '\0');
  file[0] = static_cast<char>(header.size());
  return file + header + std::string(24, '\1');
}

std::string ArrayFile(std::string_view descr, const std::vector<int64_t>& shape,
                      std::string_view elements) {
  return client::NpyHeader(descr, shape) + std::string(elements);
}

std::string Idx() { return std::string("\0\0\x08\x03\0\0\0\2\0\0\0\2\0\0\0\2", 16) + "abcdefgh"; }

std::string Compressed(const std::string& bytes) {
  z_stream stream = {};
  constexpr int kGzip = 15 + 16;
  Require(deflateInit2(&stream, 9, Z_DEFLATED, kGzip, 8, Z_DEFAULT_STRATEGY) == Z_OK,
          "zlib starts");
  std::string out(256, '\0');
  std::string in = bytes;
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  Require(deflate(&stream, Z_FINISH) == Z_STREAM_END, "the output fits");
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

}  // namespace

void AddFileSeeds(const SeedSink& add) {
  add("key_set_file", "two_keys", KeySetFile());
  add("secret_key_file", "ternary", SecretKeyFile());
  add("program_file", "square_sum", ProgramFile());
  add("values_file", "one",
      WithoutHash(
          client::EncodeValuesFile({.program = "p", .item_count = 1, .tree = OneCiphertext()})
              .value()));
  add("key_file_head", "two_keys", KeyFileHead());
  add("safetensors", "two", Safetensors());

  const double numbers[] = {1.5, -2, 3e-5, 4};
  add("vectors_npy", "f8",
      ArrayFile("<f8", {2, 2}, {reinterpret_cast<const char*>(numbers), sizeof(numbers)}));
  add("vectors_npy", "u1", ArrayFile("|u1", {3}, "abc"));
  add("vectors_npy", "f4", ArrayFile("<f4", {1, 2}, std::string(8, '\1')));
  add("tensor_files", "ciphertext",
      ArrayFile("<u8", {2, 3, 16}, testing::PayloadOf(OneCiphertext())));

  add("idx", "plain", Idx());
  add("idx", "gzip", Compressed(Idx()));
}

}  // namespace cipherd::fuzz
