#include "tokenizer/constraint/stop_strings.h"

#include <algorithm>

#include "data/base/error.h"

namespace zoo {

StopStrings::StopStrings(std::vector<std::string> texts) : texts_(std::move(texts)) {
  for (const std::string& text : texts_)
    if (text.empty()) throw Error("a stop string is empty: a text would end before it begins");
}

std::size_t StopStrings::longest() const {
  std::size_t size = 0;
  for (const std::string& text : texts_) size = std::max(size, text.size());
  return size;
}

std::optional<std::size_t> StopStrings::find(std::string_view text) const {
  std::size_t first = std::string_view::npos;
  for (const std::string& stop : texts_) first = std::min(first, text.find(stop));
  if (first == std::string_view::npos) return std::nullopt;
  return first;
}

std::size_t StopStrings::undecided(std::string_view text) const {
  for (std::size_t size = std::min(text.size(), longest()); size > 0; --size) {
    const std::string_view end = text.substr(text.size() - size);
    const bool begins = std::ranges::any_of(
        texts_, [&](const std::string& stop) { return std::string_view(stop).substr(0, size) == end; });
    if (begins) return size;
  }
  return 0;
}

}  // namespace zoo
