// Messages out of the bytes that gRPC received, and into those that it sends.
//
//   v1::PutKeysRequest request;
//   CIPHERD_RETURN_IF_ERROR(ParseMessage(bytes, request));
//
// The service takes bytes from gRPC and parses them here: left to itself, gRPC answers a unary
// message that does not parse with UNIMPLEMENTED and no word, and tells the receiver of a stream
// the same as at its end, so that a damaged last message would pass for a half-close.
#pragma once

#include "absl/status/status.h"
#include "grpcpp/impl/codegen/proto_utils.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/status.h"
#include "proto/codec/error_detail.h"

namespace cipherd::server {

// Empties `bytes`. InvalidArgument (malformed value) where they are no such message.
template <typename Message>
absl::Status ParseMessage(grpc::ByteBuffer& bytes, Message& message) {
  const grpc::Status status = grpc::SerializationTraits<Message>::Deserialize(&bytes, &message);
  bytes.Clear();
  if (status.ok()) return absl::OkStatus();
  return codec::Refuse(v1::ERROR_REASON_MALFORMED_VALUE, "message",
                       "its bytes are not those of a message of this call");
}

// Replaces `bytes`. Internal where the message is too large for protobuf.
template <typename Message>
absl::Status SerializeMessage(const Message& message, grpc::ByteBuffer& bytes) {
  bool own_buffer = false;
  bytes.Clear();
  const grpc::Status status =
      grpc::SerializationTraits<Message>::Serialize(message, &bytes, &own_buffer);
  return status.ok() ? absl::OkStatus() : absl::InternalError(status.error_message());
}

}  // namespace cipherd::server
