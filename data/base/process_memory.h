#pragma once

#include <cstdint>

namespace zoo {

/// Bytes that this process can still get of the machine or, if less, its control group; -1 if unknown.
std::int64_t available_memory();

/// The most bytes that this process has had in memory; -1 if unknown.
std::int64_t peak_memory();

/// Releases memory left over from program start, before large allocations: the heap's free pages, and about
/// 45 MB of LibTorch's registration code. Code that runs again comes from the page cache.
void give_back_idle_memory();

/// Makes the heap keep freed memory: each training update asks for the same sizes again, and memory returned
/// to the system comes back one page fault at a time.
void keep_freed_memory();

}  // namespace zoo
