#include "apps/verbs/text/text_spans.h"

#include <nlohmann/json.hpp>

#include "data/base/error.h"
#include "tokenizer/text/utf8.h"

namespace zoo {

void add_span(nlohmann::ordered_json& json, const std::string& text, const ByteRange& range) {
  const std::string_view all = text;
  json["text"] = replace_invalid_utf8(all.substr(range.begin, range.end - range.begin));
  json["start"] = count_characters(all.substr(0, range.begin));
  json["end"] = count_characters(all.substr(0, range.end));
}

void require_offsets(const Encoding& encoding) {
  if (encoding.offsets.size() == encoding.size()) return;
  throw Error(
      "--model: its tokenizer does not tell where its tokens lie in a text, so that no words can be named");
}

}  // namespace zoo
