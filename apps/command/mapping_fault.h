#pragma once

namespace zoo {

/// From now on, a read of a mapped file that has become shorter, or whose disk fails, ends the program with a
/// line that names the file and status 1, instead of a silent SIGBUS.
void report_mapping_faults();

}  // namespace zoo
