// What every program here asks of malloc: keep large blocks instead of returning them at once, and
// keep few of them.
//
//   int main(...) { cipherd::base::KeepLargeBlocks(); ... }
//   TaskThread thread("free memory", {.interval = ..., .run = [] { ReturnFreeMemory(); }});
//
// Messages of megabytes come and go all the time. glibc's defaults serve each from a mapping of its
// own and give it back, so that every message pays for page faults again: 0.1 GB/s through gRPC
// instead of 1.5 to 3.4. What is kept is kept for ever, by each of glibc's arenas the most that it
// ever had: with its default of eight arenas a core, a process grows for hours until each of them
// has seen the worst.
#pragma once

namespace cipherd::base {

// Keeps freed blocks of up to 32 MiB, and up to 1 GiB of free heap at the top of an arena; makes no
// more arenas than there are cores. Process-wide; call it before threads start. False where the
// allocator does not take it.
bool KeepLargeBlocks();

// Gives every page of free heap back to the system, in the midst of it and in all arenas: after a
// flood, a process is as small as before. Takes milliseconds for tens of megabytes, in which who
// allocates may wait, and what is used again is faulted in again. Any thread.
void ReturnFreeMemory();

}  // namespace cipherd::base
