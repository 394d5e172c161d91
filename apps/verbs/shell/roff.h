#pragma once

#include <string>
#include <string_view>

namespace zoo {

/// Escapes one line of UTF-8 text for a man page: roff reads no request in it, and '-' and quotes can be
/// copied into a shell.
std::string roff(std::string_view text);

}  // namespace zoo
