#pragma once

#include <filesystem>
#include <string>

namespace zoo {

/// The text of a UTF-8 file, without a byte order mark. Throws Error naming the file, and the line of what is
/// not UTF-8; an empty file is an Error too.
std::string read_text(const std::filesystem::path& path);

}  // namespace zoo
