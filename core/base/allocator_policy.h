// What every program here asks of malloc: keep large blocks instead of returning them at once.
//
//   int main(...) { cipherd::base::KeepLargeBlocks(); ... }
//
// Messages of megabytes come and go all the time. glibc's defaults serve each from a mapping of its
// own and give it back, so that every message pays for page faults again: 0.1 GB/s through gRPC
// instead of 1.5 to 3.4.
#pragma once

namespace cipherd::base {

// Serves blocks up to 32 MiB (the most that glibc lets one ask for) from the heap, and keeps up to
// 1 GiB of free heap. To be called first in main. Returns false where the allocator does not take
// it.
bool KeepLargeBlocks();

}  // namespace cipherd::base
