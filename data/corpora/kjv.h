#pragma once

#include <string>
#include <string_view>

namespace zoo {

/// The King James text as the `bible` program of Debian's bible-kjv package prints it, laid out by
/// lay_out_kjv. Throws Error that says how to install the package if the program or its data is missing.
std::string extract_kjv();

/// From `bible`'s pretty printing to plain reading text: a chapter is its heading ("Genesis 1"), an empty
/// line, one line a verse without its number, and an empty line before the next chapter. Exposed for the
/// tests.
std::string lay_out_kjv(std::string_view printed);

}  // namespace zoo
