#include "proto/codec/text_message.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "proto/codec/error_detail.h"

namespace cipherd::codec::internal {
namespace {

// Keeps the first error of a parse.
class FirstError final : public google::protobuf::io::ErrorCollector {
 public:
  // Line and column count from 0; -1 where there is none.
  void AddError(int line, google::protobuf::io::ColumnNumber column,
                const std::string& message) override {
    if (!text_.empty()) return;
    position_ = line < 0 ? "" : absl::StrCat(":", line + 1, ":", column + 1);
    text_ = message;
  }
  const std::string& position() const { return position_; }
  const std::string& text() const { return text_; }

 private:
  std::string position_;
  std::string text_;
};

}  // namespace

absl::Status ParseTextMessage(std::string_view text, std::string_view path,
                              google::protobuf::Message& message) {
  FirstError error;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  if (parser.ParseFromString(std::string(text), &message)) return absl::OkStatus();
  return Refuse(v1::ERROR_REASON_MALFORMED_VALUE, absl::StrCat(std::string(path), error.position()),
                error.text());
}

}  // namespace cipherd::codec::internal
