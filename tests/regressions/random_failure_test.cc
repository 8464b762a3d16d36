// The generators went on with what their buffers held when OpenSSL refused the cipher: keys made of
// it would have been the same for everyone.
#include <openssl/provider.h>
#include <signal.h>

#include "core/secret/random.h"
#include "gtest/gtest.h"

namespace cipherd::secret {
namespace {

TEST(RandomFailureDeathTest, ACipherThatIsRefusedEndsTheProcess) {
  EXPECT_EXIT(
      {
        // A library with a provider that has nothing does not load its default one.
        if (OSSL_PROVIDER_load(nullptr, "null") == nullptr) _exit(1);
        uint8_t bytes[16];
        Random::FromSeedForTesting(1).Fill(bytes);
        _exit(0);
      },
      ::testing::KilledBySignal(SIGABRT), "");
}

}  // namespace
}  // namespace cipherd::secret
