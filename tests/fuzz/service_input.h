// What the service's target makes of its bytes: steps of calls, each a piece (message_bytes.h). Its
// first byte says which call and what of it, the rest is a message's bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tests/fuzz/message_bytes.h"

namespace cipherd::fuzz {

// Calls that are open at once: the two lowest bits.
inline constexpr uint8_t kCallSlots = 4;

// The next two bits.
enum class ServiceStep : uint8_t {
  kOpen,    // the byte that follows is the method's place in kServiceMethods
  kWrite,   // the bytes that follow are the message
  kFinish,  // half-close, and read until the status
  kCancel,
};

struct ServiceMethod {
  const char* name;
  // Takes any number of messages. Others take one, and the channel within the process, unlike a
  // connection, holds on to a second for ever.
  bool is_stream = false;
};

inline constexpr ServiceMethod kServiceMethods[] = {
    {"/cipherd.v1.EvaluationService/EvaluateStream", true},
    {"/cipherd.v1.EvaluationService/Evaluate"},
    {"/cipherd.v1.EvaluationService/PutKeys", true},
    {"/cipherd.v1.EvaluationService/GetKeyUpload"},
    {"/cipherd.v1.EvaluationService/DropKeys"},
    {"/cipherd.v1.EvaluationService/GetProgram"},
    {"/cipherd.v1.EvaluationService/ListPrograms"},
    {"/cipherd.v1.EvaluationService/GetServerInfo"},
    {"/inference.GRPCInferenceService/ModelInfer"},
    {"/inference.GRPCInferenceService/ModelMetadata"},
    {"/inference.GRPCInferenceService/ModelReady"},
    {"/grpc.health.v1.Health/Check"},
};

inline void AppendStep(int slot, ServiceStep step, std::string_view rest, std::string& bytes) {
  std::string piece(1, static_cast<char>(slot | static_cast<int>(step) << 2));
  piece += rest;
  AppendPiece(piece, bytes);
}

}  // namespace cipherd::fuzz
