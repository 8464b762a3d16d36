// The whole daemon but for the network: steps of up to four calls at once, whose messages are any
// bytes, through gRPC's channel within the process. After each input every request has ended, and
// nothing is held that no request holds.
#include <array>
#include <memory>
#include <optional>
#include <string>

#include "absl/time/clock.h"
#include "server/server.h"
#include "spdlog/spdlog.h"
#include "tests/fuzz/service_input.h"
#include "tests/fuzz/service_program.h"
#include "tests/programs/temporary_directory.h"
#include "tests/server/raw_call.h"
#include "tests/server/service_fixture.h"

namespace cipherd::fuzz {
namespace {

using server::Server;
using server::testing::RawCall;

// A call that takes longer hangs.
constexpr absl::Duration kPatience = absl::Seconds(20);
// An input of many small calls costs time and shows nothing new.
constexpr int kMaxSteps = 24;

std::unique_ptr<Server> StartServer() {
  spdlog::set_level(spdlog::level::off);
  SilenceProtobuf();
  const programs::TemporaryDirectory directory;
  server::testing::AddProgram(directory.path(), ServiceProgram());
  server::ServerOptions options = server::testing::TestOptions(directory.path());
  options.device.spec = "cpu";
  options.engine.keys.host_budget_bytes = 1 << 20;
  options.engine.keys.device_budget_bytes = 1 << 20;
  options.transport.upload_resume_timeout = absl::Seconds(1);
  auto server = Server::Start(options, base::Clock::Real());
  Require(server.ok() && (*server)->LoadPrograms().ok(), "the daemon starts");
  return *std::move(server);
}

// Those that are running, and those that were cancelled and do not know yet.
bool AllRequestsHaveEnded(Server& server) {
  for (const auto& [program, counts] : server.engine().ledger().Snapshot()) {
    if (counts.in_flight > 0 || !counts.Balances()) return false;
  }
  return true;
}

class Calls {
 public:
  explicit Calls(std::shared_ptr<grpc::Channel> channel) : channel_(std::move(channel)) {}

  void Take(std::string_view piece) {
    if (piece.empty()) return;
    const auto head = static_cast<uint8_t>(piece[0]);
    Slot& slot = slots_[head % kCallSlots];
    piece.remove_prefix(1);
    switch (static_cast<ServiceStep>(head / kCallSlots % 4)) {
      case ServiceStep::kOpen:
        Finish(slot);
        if (!piece.empty()) Open(static_cast<uint8_t>(piece[0]), slot);
        break;
      case ServiceStep::kWrite:
        if (!slot.call.has_value() || !slot.takes_message) break;
        // What cannot be sent any more is no matter.
        slot.call->Write(piece);
        slot.takes_message = slot.is_stream;
        break;
      case ServiceStep::kFinish:
        Finish(slot);
        break;
      case ServiceStep::kCancel:
        if (slot.call.has_value()) slot.call->Cancel();
        break;
    }
  }

  void FinishAll() {
    for (Slot& slot : slots_) Finish(slot);
  }

  bool any_ok() const { return any_ok_; }

 private:
  struct Slot {
    std::optional<RawCall> call;
    bool is_stream = false;
    bool takes_message = false;
  };

  void Open(size_t number, Slot& slot) {
    const ServiceMethod& method = kServiceMethods[number % std::size(kServiceMethods)];
    slot.call.emplace(channel_, method.name);
    slot.is_stream = method.is_stream;
    slot.takes_message = true;
  }

  void Finish(Slot& slot) {
    if (!slot.call.has_value()) return;
    const grpc::Status status = slot.call->Finish();
    slot.call.reset();
    Require(status.error_code() != grpc::StatusCode::INTERNAL &&
                status.error_code() != grpc::StatusCode::UNKNOWN,
            "others' bytes are no fault of ours");
    any_ok_ = any_ok_ || status.ok();
  }

  const std::shared_ptr<grpc::Channel> channel_;
  std::array<Slot, kCallSlots> slots_;
  bool any_ok_ = false;
};

}  // namespace

bool Decode(std::string_view bytes) {
  static Server& server = *StartServer().release();
  static const auto& channel = *new std::shared_ptr<grpc::Channel>(server.InProcessChannel());
  Calls calls(channel);
  Pieces pieces(bytes);
  for (int step = 0; step < kMaxSteps && !pieces.is_empty(); ++step) calls.Take(pieces.Next());
  calls.FinishAll();
  const absl::Time give_up = absl::Now() + kPatience;
  while (!AllRequestsHaveEnded(server)) {
    Require(absl::Now() < give_up, "every request ends");
    absl::SleepFor(absl::Microseconds(100));
  }
  return calls.any_ok();
}

}  // namespace cipherd::fuzz
