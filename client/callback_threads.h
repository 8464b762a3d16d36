// gRPC's threads that run callbacks of clients.
#pragma once

namespace cipherd::client {

// gRPC 1.51 starts these threads with the first channel that makes a call by callback, and ends and
// joins them with the last one. Where that one goes on one of these threads, as in a callback that
// lets go of a client, the thread would have to join itself: the process aborts. From the first
// call of this on they last as long as the process. Thread-safe, idempotent; takes microseconds.
void KeepCallbackThreads();

}  // namespace cipherd::client
