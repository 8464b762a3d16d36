// The arrows of inclusion point one way (ARCHITECTURE.md).
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace cipherd::testing {
namespace {

namespace fs = std::filesystem;

// What each folder may include beside itself. A folder stands for everything below it that has no
// entry of its own.
const std::map<std::string, std::set<std::string>> kMayInclude = {
    {"core/base", {}},
    {"core/math", {"core/base"}},
    {"core/ring", {"core/base", "core/math"}},
    {"core/runtime", {"core/base"}},
    {"core/kernels", {"core/base", "core/math", "core/ring", "core/runtime"}},
    {"core/value", {"core/base", "core/runtime"}},
    {"core/execution", {"core/base", "core/runtime", "core/value"}},
    {"core/ckks",
     {"core/base", "core/math", "core/ring", "core/runtime", "core/kernels", "core/value"}},
    {"core/programs",
     {"core/base", "core/math", "core/ring", "core/runtime", "core/value", "core/execution",
      "core/ckks"}},
    {"core/planning",
     {"core/base", "core/math", "core/ring", "core/runtime", "core/value", "core/ckks",
      "core/programs"}},
    {"core/secret",
     {"core/base", "core/math", "core/ring", "core/runtime", "core/value", "core/ckks"}},
    {"proto/codec",
     {"core/base", "core/ring", "core/runtime", "core/value", "core/execution", "core/ckks",
      "core/programs", "core/planning"}},
    {"proto/grpc_status", {}},
    {"proto/inference", {"core/base", "core/value", "proto/codec"}},
    {"server/engine",
     {"core/base", "core/runtime", "core/value", "core/execution", "core/ckks", "core/programs"}},
    {"server",
     {"core/base", "core/runtime", "core/value", "core/execution", "core/ckks", "core/programs",
      "proto/codec", "proto/grpc_status", "proto/inference", "server/engine"}},
    {"client",
     {"core/base", "core/runtime", "core/value", "core/execution", "core/ckks", "core/programs",
      "core/planning", "core/secret", "proto/codec", "proto/grpc_status"}},
};

// Headers of others that only these folders may include, by prefix.
const std::map<std::string, std::vector<std::string>> kOnlyIn = {
    {"cuda", {"core/runtime/cuda", "core/kernels/cuda"}},
    {"grpcpp/", {"proto/grpc_status", "server", "client"}},
    {"google/protobuf", {"proto", "server", "client"}},
    {"cipherd/v1/", {"proto", "server", "client"}},
    {"inference/", {"proto", "server"}},
    {"prometheus/", {"server"}},
    {"jwt.h", {"server"}},
};

struct Include {
  std::string file;  // relative to the sources
  std::string header;
};

std::vector<Include> AllIncludes() {
  std::vector<Include> includes;
  const fs::path root = CIPHERD_SOURCE_DIR;
  for (const char* top : {"core", "proto", "server", "client"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / top)) {
      const std::string extension = entry.path().extension().string();
      if (extension != ".h" && extension != ".cc" && extension != ".cu" && extension != ".cuh")
        continue;
      std::ifstream file(entry.path());
      for (std::string line; std::getline(file, line);) {
        if (line.rfind("#include ", 0) != 0) continue;
        const size_t begin = line.find_first_of("<\"") + 1;
        const size_t end = line.find_first_of(">\"", begin);
        includes.push_back(
            {fs::relative(entry.path(), root).string(), line.substr(begin, end - begin)});
      }
    }
  }
  return includes;
}

bool IsWithin(const std::string& path, const std::string& folder) {
  return path.rfind(folder + "/", 0) == 0;
}

// The most specific folder of kMayInclude that holds `path`, or "".
std::string FolderOf(const std::string& path) {
  std::string best;
  for (const auto& [folder, allowed] : kMayInclude) {
    if (IsWithin(path, folder) && folder.size() > best.size()) best = folder;
  }
  return best;
}

TEST(LayeringTest, FoldersIncludeOnlyWhatIsBelowThem) {
  int checked_count = 0;
  for (const Include& include : AllIncludes()) {
    const std::string from = FolderOf(include.file);
    EXPECT_NE(from, "") << include.file << " is in no known folder";
    const std::string to = FolderOf(include.header);
    if (from.empty() || to.empty() || from == to) continue;
    ++checked_count;
    EXPECT_EQ(kMayInclude.at(from).count(to), 1u) << include.file << " includes " << include.header;
  }
  EXPECT_GT(checked_count, 100) << "the scan has lost the sources";
}

TEST(LayeringTest, HeadersOfOthersStayInTheirFolders) {
  for (const Include& include : AllIncludes()) {
    for (const auto& [prefix, folders] : kOnlyIn) {
      if (include.header.rfind(prefix, 0) != 0) continue;
      bool is_allowed = false;
      for (const std::string& folder : folders)
        is_allowed = is_allowed || IsWithin(include.file, folder);
      EXPECT_TRUE(is_allowed) << include.file << " includes " << include.header;
    }
  }
}

TEST(LayeringTest, EngineKnowsNeitherGrpcNorProtobuf) {
  for (const Include& include : AllIncludes()) {
    if (!IsWithin(include.file, "server/engine")) continue;
    for (const char* prefix : {"grpc", "google/protobuf", "cipherd/v1", "proto/"}) {
      EXPECT_NE(include.header.rfind(prefix, 0), 0u)
          << include.file << " includes " << include.header;
    }
  }
}

}  // namespace
}  // namespace cipherd::testing
