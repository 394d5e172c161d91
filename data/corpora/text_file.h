#pragma once

#include <filesystem>
#include <string>

namespace zoo {

/// Reads a UTF-8 file without its byte order mark. Throws Error naming the file, and the line of invalid
/// UTF-8; an empty file is an Error too.
std::string read_text(const std::filesystem::path& path);

}  // namespace zoo
