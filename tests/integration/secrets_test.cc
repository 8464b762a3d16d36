// The daemon has no code that handles secret keys.
#include <fstream>
#include <iterator>
#include <string>

#include "gtest/gtest.h"

namespace cipherd::testing {
namespace {

// Whether the binary names anything of namespace cipherd::secret (mangled).
bool NamesSecrets(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string content{std::istreambuf_iterator<char>(file), {}};
  EXPECT_FALSE(content.empty()) << path;
  return content.find("7cipherd6secret") != std::string::npos;
}

TEST(SecretsTest, DaemonLinksNoCodeOfSecrets) {
  EXPECT_FALSE(NamesSecrets(CIPHERD_BINARY));
  // The scan finds what it looks for where it is.
  EXPECT_TRUE(NamesSecrets(CIPHERCTL_BINARY));
}

}  // namespace
}  // namespace cipherd::testing
