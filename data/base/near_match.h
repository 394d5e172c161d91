#pragma once

#include <span>
#include <string>
#include <string_view>

namespace zoo {

/// The candidate with the smallest edit distance to `word` (insert, delete, replace, swap of neighbours); ""
/// if more than a third of the word would have to change.
std::string nearest(std::string_view word, std::span<const std::string> candidates);

/// "; did you mean 'NAME'?" for the nearest candidate, "" if there is none. Ends an error message.
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates);

}  // namespace zoo
