#pragma once

#include <optional>
#include <string_view>

#include <unicode/uniset.h>

namespace zoo {

/// The characters of a property as in the engine of `tokenizers` (Oniguruma, Unicode 16): `\p{NAME}` with a
/// general category ("L", "Lu" …), a script ("Han" …) or "Alphabetic", "Uppercase", "Lowercase", "Punct",
/// "Space", "Word", "Any", "ASCII"; ignores case, spaces, hyphens and underscores. Nothing for another name.
std::optional<icu::UnicodeSet> characters_of_property(std::string_view name);

/// The characters of [:NAME:], such as "punct".
std::optional<icu::UnicodeSet> characters_of_bracket(std::string_view name);

/// The characters of `\d`, `\h`, `\s` and `\w` inside of brackets, and of their complements for a capital
/// letter; nothing for another letter.
std::optional<icu::UnicodeSet> characters_of_escape(char letter);

}  // namespace zoo
