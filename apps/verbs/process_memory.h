#pragma once

namespace zoo {

/// Gives back memory that the start of the program has left behind, before much is asked for: the heap's free
/// pages, and about 45 MB of code with which LibTorch registered itself. What runs again comes back from the
/// page cache.
void give_back_idle_memory();

/// Lets the heap keep what is freed: an update of a training asks for the same sizes as the one before it,
/// and pages that go back to the system come again one fault at a time.
void keep_freed_memory();

}  // namespace zoo
