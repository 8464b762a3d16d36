// kill -9 at random points of uploads and evaluations: whatever moment it hits, the next daemon
// opens the store, has every key set whose upload was acknowledged, whole, and nothing half.
//
// CIPHERD_KILL_ROUNDS sets the number of kills (10), CIPHERD_KILL_SEED the moments.
#include <signal.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "client/client.h"
#include "client/program_cipher.h"
#include "core/secret/key_generator.h"
#include "proto/codec/key_set_id.h"
#include "tests/integration/daemon_fixture.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::testing {
namespace {

namespace fs = std::filesystem;
using client::Client;
using client::NamedVectors;
using client::ProgramCipher;
using client::ProgramPtr;

// Those of client_and_daemon_test.cc: the program turns by one slot what it has squared.
constexpr double kTolerance = (2 * 30.5 * 1024 + 3.0 * 1024 * 1024) / (int64_t{1} << 40);

int FromEnvironment(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

// One owner of a key set.
struct Owner {
  explicit Owner(ProgramPtr of, uint64_t seed)
      : program(std::move(of)),
        random(secret::Random::FromSeedForTesting(seed)),
        secret_key(secret::SecretKey::Generate(program->context, random)),
        cipher(program, secret_key) {
    codec::KeySetIdBuilder id(program->known_context->id_bytes());
    const secret::KeyGenerator generator(secret_key);
    for (const ckks::KeyId& key_id : program->required_keys.ids()) {
      const secret::GeneratedKey generated = generator.GenerateKey(key_id, random).value();
      keys.push_back(generated.key.ToValue(program->context->parameters(), program->context->id()));
      id.Add(key_id, codec::PayloadDigest(keys.back(), "key").value());
    }
    key_set_id = base::ToHex(id.Finish());
  }

  // OK once the daemon has acknowledged the set.
  absl::Status Upload(const Client& client, std::atomic<int>& progress) {
    auto upload = client.StartKeyUpload({.context = program->known_context,
                                         .key_count = static_cast<int>(keys.size()),
                                         .total_bytes = program->key_bytes,
                                         .progress = [&](uint64_t, uint64_t) { ++progress; },
                                         .upload_id = "",
                                         .resume_timeout = absl::ZeroDuration()});
    if (!upload.ok()) return upload.status();
    for (const value::ExactValue& key : keys) {
      if (absl::Status status = (*upload)->Add(key); !status.ok()) return status;
    }
    const absl::StatusOr<std::string> id = (*upload)->Finish();
    if (id.ok()) {
      EXPECT_EQ(*id, key_set_id);
    }
    return id.status();
  }

  // OK with a result that was compared, or why there was none.
  absl::Status Evaluate(const Client& client, secret::Random& randomness) const {
    client::Vectors x(2, std::vector<double>(256));
    for (int k = 0; k < 2; ++k) {
      for (int j = 0; j < 256; ++j) x[k][j] = (j + 256 * k) / 512.0;
    }
    const auto inputs = cipher.EncryptInputs({{"x", x}}, randomness);
    if (!inputs.ok()) return inputs.status();
    const auto result = client.Evaluate(
        {.program = program, .key_set_id = key_set_id, .request_id = "", .inputs = *inputs});
    if (!result.ok()) return result.status();
    const auto outputs = cipher.DecryptOutputs(result->outputs, 2);
    if (!outputs.ok()) return outputs.status();
    for (int j = 0; j < 256; ++j) {
      if (std::abs(outputs->at("y")[0][j] - x[1][j] * x[1][j]) > kTolerance) {
        return absl::DataLossError("a wrong result");
      }
    }
    return absl::OkStatus();
  }

  ProgramPtr program;
  secret::Random random;
  secret::SecretKey secret_key;
  ProgramCipher cipher;
  std::vector<value::ExactValue> keys;
  std::string key_set_id;
  bool is_acknowledged = false;
};

class KillTest : public DaemonTest {
 protected:
  std::vector<std::string> Flags() const {
    // Room for few sets in memory, so that most are read from their files.
    return {"--key-directory",     Path("keys"), "--key-host-memory", "2MiB",
            "--key-device-memory", "2MiB"};
  }
  void ExpectNothingHalf() const {
    for (const auto& entry : fs::recursive_directory_iterator(Path("keys"))) {
      if (entry.is_directory()) continue;
      const std::string name = entry.path().filename().string();
      EXPECT_TRUE(name == "lock" || name.ends_with(".keys")) << name;
      struct stat status = {};
      ASSERT_EQ(stat(entry.path().c_str(), &status), 0);
      EXPECT_EQ(status.st_mode & 0777, 0600u) << name;
    }
  }
};

TEST_F(KillTest, CompleteKeySetsAreIntactAndPartialOnesGone) {
  const int rounds = FromEnvironment("CIPHERD_KILL_ROUNDS", 10);
  const int seed = FromEnvironment("CIPHERD_KILL_SEED", 1);
  std::mt19937_64 moments(seed);
  const std::string programs = SmallPrograms();
  std::vector<std::unique_ptr<Owner>> owners;
  int acknowledged = 0, unacknowledged_whole = 0, unacknowledged_gone = 0, evaluations = 0;

  for (int round = 0; round <= rounds; ++round) {
    SCOPED_TRACE(round);
    ASSERT_OK(StartDaemon(programs, kSmallProgram, Flags()));
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Client> client, Connect());
    ASSERT_OK_AND_ASSIGN(const ProgramPtr program, client->GetProgram(kSmallProgram));
    ExpectNothingHalf();
    secret::Random random = secret::Random::FromSeedForTesting(1000 + round);
    for (auto it = owners.begin(); it != owners.end();) {
      Owner& owner = **it;
      const absl::Status status = owner.Evaluate(*client, random);
      if (owner.is_acknowledged) {
        EXPECT_OK(status) << owner.key_set_id;
      } else if (status.ok()) {
        // The acknowledgement was lost on its way.
        ++unacknowledged_whole;
        owner.is_acknowledged = true;
      } else {
        EXPECT_EQ(client::ReasonOf(status), v1::ERROR_REASON_UNKNOWN_KEY_SET);
        ++unacknowledged_gone;
        it = owners.erase(it);
        continue;
      }
      ++it;
    }
    if (round == rounds || HasFailure()) break;
    // A few of the oldest stay for good, to see many kills; of the others the latest.
    while (owners.size() > 8) {
      EXPECT_OK(client->DropKeys(owners[3]->key_set_id));
      owners.erase(owners.begin() + 3);
    }

    std::vector<std::unique_ptr<Owner>> newcomers;
    for (int i = 0; i < 4; ++i) {
      newcomers.push_back(std::make_unique<Owner>(program, 10 * round + i + 7));
    }
    std::atomic<bool> is_killed = false;
    std::atomic<int> progress = 0, done = 0, evaluated = 0;
    std::vector<std::thread> threads;
    for (int uploader = 0; uploader < 2; ++uploader) {
      threads.emplace_back([&, uploader] {
        for (size_t i = uploader; i < newcomers.size() && !is_killed; i += 2) {
          newcomers[i]->is_acknowledged = newcomers[i]->Upload(*client, progress).ok();
          ++progress;
        }
        ++done;
      });
    }
    threads.emplace_back([&] {
      secret::Random own = secret::Random::FromSeedForTesting(5000 + round);
      for (size_t i = 0; !owners.empty() && !is_killed; ++i) {
        const absl::Status status = owners[i % owners.size()]->Evaluate(*client, own);
        EXPECT_FALSE(absl::IsDataLoss(status)) << status.ToString();
        if (!status.ok()) break;
        ++evaluated;
      }
    });
    // After so many steps of the uploads, and a moment more: in a chunk, at the half-close, in the
    // write of a file, between two uploads.
    const int steps = static_cast<int>(moments() % 12);
    while (progress < steps && done < 2) std::this_thread::yield();
    const auto moment = std::chrono::microseconds(moments() % 4000);
    const auto until = std::chrono::steady_clock::now() + moment;
    while (std::chrono::steady_clock::now() < until) std::this_thread::yield();
    is_killed = true;
    daemon_->Signal(SIGKILL);
    EXPECT_EQ(daemon_->Wait(), -SIGKILL);
    daemon_.reset();
    for (std::thread& thread : threads) thread.join();
    evaluations += evaluated;
    for (auto& newcomer : newcomers) {
      newcomer->keys.clear();
      acknowledged += newcomer->is_acknowledged;
      owners.push_back(std::move(newcomer));
    }
  }
  std::cout << "kills: " << rounds << "; uploads acknowledged: " << acknowledged
            << ", whole without: " << unacknowledged_whole << ", gone: " << unacknowledged_gone
            << "; evaluations before kills: " << evaluations << "\n";
  EXPECT_GT(acknowledged, 0);
}

}  // namespace
}  // namespace cipherd::testing
