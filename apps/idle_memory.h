#pragma once

namespace zoo {

/// Gives back memory that the start of the program has left behind, before much is asked for: the heap's free
/// pages, and about 45 MB of code with which LibTorch registered itself. What runs again comes back from the
/// page cache.
void give_back_idle_memory();

}  // namespace zoo
