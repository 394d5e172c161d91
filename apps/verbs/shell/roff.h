#pragma once

#include <string>
#include <string_view>

namespace zoo {

/// A text of one line, in UTF-8, for a man page: nothing in it is taken for a request of roff, and '-' and
/// the quotes are those that can be copied into a shell.
std::string roff(std::string_view text);

}  // namespace zoo
