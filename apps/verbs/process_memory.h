#pragma once

namespace zoo {

/// Releases memory left over from program start, before large allocations: the heap's free pages, and about
/// 45 MB of LibTorch's registration code. Code that runs again comes from the page cache.
void give_back_idle_memory();

/// Makes the heap keep freed memory: each training update asks for the same sizes again, and memory returned
/// to the system comes back one page fault at a time.
void keep_freed_memory();

}  // namespace zoo
