#pragma once

namespace zoo {

/// After this call, an access to a mapped file that was truncated, or whose disk fails, ends the program with
/// a message naming the file and status 1, instead of a silent SIGBUS.
void report_mapping_faults();

}  // namespace zoo
