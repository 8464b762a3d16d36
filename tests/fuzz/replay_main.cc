// Makes a test of a target: TARGET_fuzz SEEDS [CORPUS] hands every file of these directories to it,
// once. Seeds are lawful: fails where there is none, or one that the target does not take, since
// then no more is tested than what comes before that. The corpus may be missing, and hold anything.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "tests/fuzz/fuzz_target.h"

namespace {

namespace fs = std::filesystem;

bool Replay(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  // Without room behind the bytes, so that AddressSanitizer sees the first one too many.
  std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  bytes.shrink_to_fit();
  // The last line is about the one that ended the process.
  std::fprintf(stderr, "%s\n", path.c_str());
  return cipherd::fuzz::Decode({bytes.data(), bytes.size()});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    std::fprintf(stderr, "usage: %s SEEDS [CORPUS]\n", argv[0]);
    return 2;
  }
  int seed_count = 0;
  for (const auto& entry : fs::directory_iterator(argv[1])) {
    ++seed_count;
    cipherd::fuzz::Require(Replay(entry.path()), "a seed is taken");
  }
  cipherd::fuzz::Require(seed_count > 0, "there are seeds");
  if (argc == 3 && fs::is_directory(argv[2])) {
    for (const auto& entry : fs::directory_iterator(argv[2])) Replay(entry.path());
  }
  return 0;
}
