#include "server/logging.h"

#include "google/protobuf/stubs/logging.h"
#include "spdlog/sinks/stdout_sinks.h"
#include "spdlog/spdlog.h"

namespace cipherd::server {
namespace {

void LogOfProtobuf(google::protobuf::LogLevel level, const char* file, int line,
                   const std::string& message) {
  // The last thing that is heard before an abort.
  const bool is_fatal = level == google::protobuf::LOGLEVEL_FATAL;
  spdlog::log(is_fatal ? spdlog::level::critical : spdlog::level::debug, "protobuf {}:{}: {}", file,
              line, message);
}

}  // namespace

void SetUpLogging(const std::string& level) {
  spdlog::set_default_logger(spdlog::stderr_logger_mt("cipherd"));
  spdlog::set_pattern("%Y-%m-%dT%H:%M:%S.%f%z %l thread=%t %v");
  spdlog::set_level(spdlog::level::from_str(level));
  google::protobuf::SetLogHandler(&LogOfProtobuf);
}

}  // namespace cipherd::server
