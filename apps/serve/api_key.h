#pragma once

#include <string>

namespace zoo {

/// The key that requests must show: `given` (--api_key), else the line in `file` (--api_key_file), else that
/// of the environment variable TZOO_API_KEY; empty: none. Notes a file that others can read. Throws
/// UsageError for two flags, and for a key that no header can hold; Error naming a file that cannot be read.
std::string api_key_of(const std::string& given, const std::string& file);

}  // namespace zoo
