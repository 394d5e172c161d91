#include "apps/verbs/text/text_spans.h"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace zoo {
namespace {

// Number of characters in the first `bytes` bytes: counts bytes that are not UTF-8 continuations.
std::int64_t characters_before(const std::string& text, std::uint32_t bytes) {
  return std::count_if(text.begin(), text.begin() + bytes,
                       [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; });
}

}  // namespace

void add_span(nlohmann::ordered_json& json, const std::string& text, const ByteRange& range) {
  json["text"] = text.substr(range.begin, range.end - range.begin);
  json["start"] = characters_before(text, range.begin);
  json["end"] = characters_before(text, range.end);
}

}  // namespace zoo
