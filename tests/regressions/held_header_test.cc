// A stream kept the message of its header, unknown fields included, until it ended: open streams of
// a few bytes held megabytes each, outside every budget.
#include <malloc.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/base/sanitizers.h"
#include "gtest/gtest.h"
#include "tests/server/service_fixture.h"

namespace cipherd::server {
namespace {

using namespace server::testing;  // NOLINT: the test's own vocabulary

#if CIPHERD_ADDRESS_SANITIZER || CIPHERD_THREAD_SANITIZER
constexpr bool kCountsAllocations = false;
#else
constexpr bool kCountsAllocations = true;
#endif

class HeldHeaderTest : public ServiceTest {
 protected:
  // Signed: what an earlier test left may go meanwhile.
  static int64_t AllocatedBytes() {
    const struct mallinfo2 info = mallinfo2();
    return static_cast<int64_t>(info.uordblks + info.hblkhd);
  }
};

TEST_F(HeldHeaderTest, WhatAHeaderBringsAlongDoesNotLastAsLongAsItsStream) {
  if (!kCountsAllocations) GTEST_SKIP() << "the sanitizer's allocator does not say what is held";
  // Many: each end of their connection keeps up to a message's size to read into.
  constexpr int64_t kStreams = 8, kUnknownBytes = 3 << 20;
  const v1::EvaluationHeader header =
      MakeWireRequest("square_sum", alice_keys(), alice().Encrypt(TestSlots(1, 128))).header;
  const int64_t before = AllocatedBytes();
  struct Call {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReaderWriter<v1::EvaluateStreamRequest, v1::EvaluateStreamResponse>>
        stream;
  };
  std::vector<std::unique_ptr<Call>> calls;
  for (int i = 0; i < kStreams; ++i) {
    auto call = std::make_unique<Call>();
    call->stream = stub_->EvaluateStream(&call->context);
    v1::EvaluateStreamRequest message;
    *message.mutable_header() = header;
    message.GetReflection()->MutableUnknownFields(&message)->AddLengthDelimited(
        1000, std::string(kUnknownBytes, 'x'));
    ASSERT_TRUE(call->stream->Write(message));
    calls.push_back(std::move(call));
  }
  // Admitted: the header has been read.
  const auto served = server_->engine().FindProgram("square_sum").value();
  while (served->trees().leased_count() < size_t{kStreams}) std::this_thread::yield();
  int64_t held = 0;
  for (int i = 0; i < 200; ++i) {
    held = AllocatedBytes() - before;
    if (held < kStreams * kUnknownBytes / 2) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_LT(held, kStreams * kUnknownBytes / 2);
  for (const auto& call : calls) call->context.TryCancel();
}

}  // namespace
}  // namespace cipherd::server
