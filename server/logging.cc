#include "server/logging.h"

#include <memory>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "google/protobuf/stubs/logging.h"
#include "nlohmann/json.hpp"
#include "spdlog/pattern_formatter.h"
#include "spdlog/sinks/ostream_sink.h"
#include "spdlog/sinks/stdout_sinks.h"

namespace cipherd::server {
namespace {

// The logger of events; its lines are fields already.
constexpr char kEventLogger[] = "cipherd events";

LogFormat& Format() {
  static LogFormat format = LogFormat::kLogfmt;
  return format;
}

std::string JsonString(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', /*ensure_ascii=*/true,
                                   nlohmann::json::error_handler_t::replace);
}

std::string LogfmtString(std::string_view text) {
  // An apostrophe ends nothing here.
  const std::string escaped = absl::StrReplaceAll(
      absl::CEscape(absl::string_view(text.data(), text.size())), {{"\\'", "'"}});
  return absl::StrCat("\"", escaped, "\"");
}

// The text of a plain message, as the value of a field.
class MessageFlag final : public spdlog::custom_flag_formatter {
 public:
  explicit MessageFlag(LogFormat format) : format_(format) {}

  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& line) override {
    const std::string_view text(message.payload.data(), message.payload.size());
    const std::string field = format_ == LogFormat::kJson
                                  ? absl::StrCat("\"message\":", JsonString(text))
                                  : absl::StrCat("message=", LogfmtString(text));
    line.append(field.data(), field.data() + field.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<MessageFlag>(format_);
  }

 private:
  const LogFormat format_;
};

std::unique_ptr<spdlog::formatter> MakeFormatter(LogFormat format, const std::string& content) {
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<MessageFlag>('*', format);
  formatter->set_pattern(format == LogFormat::kJson
                             ? R"({"time":"%Y-%m-%dT%H:%M:%S.%f%z","level":"%l","thread":%t,)" +
                                   content + "}"
                             : "time=%Y-%m-%dT%H:%M:%S.%f%z level=%l thread=%t " + content);
  return formatter;
}

void LogOfProtobuf(google::protobuf::LogLevel level, const char* file, int line,
                   const std::string& message) {
  // The last thing that is heard before an abort.
  const bool is_fatal = level == google::protobuf::LOGLEVEL_FATAL;
  spdlog::log(is_fatal ? spdlog::level::critical : spdlog::level::debug, "protobuf {}:{}: {}", file,
              line, message);
}

// A sink has one formatter, so that messages and events have a sink each. Both write whole lines
// to one stream.
template <typename MakeSink>
void SetUp(const std::string& level, LogFormat format, const MakeSink& make_sink) {
  Format() = format;
  auto messages = std::make_shared<spdlog::logger>("cipherd", make_sink());
  messages->set_formatter(MakeFormatter(format, "%*"));
  auto events = std::make_shared<spdlog::logger>(kEventLogger, make_sink());
  events->set_formatter(MakeFormatter(format, "%v"));
  spdlog::drop(kEventLogger);
  spdlog::register_logger(events);
  spdlog::set_default_logger(messages);
  spdlog::set_level(spdlog::level::from_str(level));
  google::protobuf::SetLogHandler(&LogOfProtobuf);
}

}  // namespace

void SetUpLogging(const std::string& level, LogFormat format) {
  SetUp(level, format, [] { return std::make_shared<spdlog::sinks::stderr_sink_mt>(); });
}

void SetUpLoggingTo(std::ostream& out, const std::string& level, LogFormat format) {
  SetUp(level, format, [&] { return std::make_shared<spdlog::sinks::ostream_sink_mt>(out); });
}

std::string LogEvent::ToString(LogFormat format) const {
  const bool is_json = format == LogFormat::kJson;
  std::string text;
  for (const auto& [key, field] : fields_) {
    if (!text.empty()) text += is_json ? ',' : ' ';
    absl::StrAppend(&text, is_json ? "\"" : "", std::string(key), is_json ? "\":" : "=");
    if (const auto* string = std::get_if<std::string>(&field)) {
      text += is_json ? JsonString(*string) : LogfmtString(*string);
    } else if (const auto* number = std::get_if<double>(&field)) {
      absl::StrAppendFormat(&text, "%.6f", *number);
    } else {
      absl::StrAppend(&text, std::get<uint64_t>(field));
    }
  }
  return text;
}

void LogEvent::Write(spdlog::level::level_enum level) const {
  if (const std::shared_ptr<spdlog::logger> events = spdlog::get(kEventLogger)) {
    if (events->should_log(level)) events->log(level, ToString(Format()));
  } else {
    spdlog::log(level, ToString(LogFormat::kLogfmt));
  }
}

}  // namespace cipherd::server
