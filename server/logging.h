// The daemon's log: a line an event, in logfmt or JSON.
//
//   SetUpLogging("info", LogFormat::kJson);
//   spdlog::info("listening on port {}", port);
//   LogEvent("rpc").Add("method", "Evaluate").Add("seconds", 0.021).Write(spdlog::level::info);
//
//   time=2026-01-02T03:04:05.000006+00:00 level=info thread=7 message="listening on port 7480"
//   {"time":"2026-01-02T03:04:05.000006+00:00","level":"info","thread":7,"event":"rpc",
//    "method":"Evaluate","seconds":0.021}
//
// What a client chose (a request id, its certificate's name) is a quoted string with everything
// escaped that could end the string or the line. Payload is never logged. Thread-safe; an event is
// used by one thread.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "spdlog/spdlog.h"

namespace cipherd::server {

enum class LogFormat : uint8_t { kLogfmt, kJson };

// One line a record on standard error, from `level` on (a name of spdlog's: "info", "error", …).
// Libraries whose messages clients could provoke at will, as protobuf's on text that is not UTF-8,
// are heard at level "debug" only. Called once, before any thread starts.
void SetUpLogging(const std::string& level, LogFormat format = LogFormat::kLogfmt);
// The same to `out`, for tests.
void SetUpLoggingTo(std::ostream& out, const std::string& level, LogFormat format);

class LogEvent {
 public:
  // Name and keys: [a-z0-9_]+.
  explicit LogEvent(std::string_view name) { Add("event", name); }

  LogEvent& Add(std::string_view key, std::string_view text) {
    return AddField(key, std::string(text));
  }
  LogEvent& Add(std::string_view key, double number) { return AddField(key, number); }
  LogEvent& Add(std::string_view key, uint64_t number) { return AddField(key, number); }

  // "event=rpc method=\"Evaluate\"", or the inside of a JSON object.
  std::string ToString(LogFormat format) const;

  // In logfmt where logging was not set up.
  void Write(spdlog::level::level_enum level) const;

 private:
  using Field = std::variant<std::string, double, uint64_t>;
  LogEvent& AddField(std::string_view key, Field field) {
    fields_.emplace_back(key, std::move(field));
    return *this;
  }

  std::vector<std::pair<std::string_view, Field>> fields_;
};

}  // namespace cipherd::server
