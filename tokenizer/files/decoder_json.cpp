#include <nlohmann/json.hpp>

#include "tokenizer/files/tokenizer_json.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

TokenDecoder read(const JsonSection& section, bool is_last) {
  const std::string type = section.text("type");
  if (type == "WordPiece")
    return word_piece_decoder(section.text("prefix", "##"), section.flag("cleanup", true));
  if (type == "ByteLevel") return byte_level_decoder(is_last);
  if (type == "Metaspace") {
    const std::string old = section.flag("add_prefix_space", true) ? "always" : "never";
    const bool prepends = section.text("prepend_scheme", old) != "never";
    return mark_decoder(utf8_of(section.character("replacement", U'\u2581')), prepends, false);
  }
  if (type == "BPEDecoder") return mark_decoder(section.text("suffix", "</w>"), false, true);
  if (type == "ByteFallback") return join_fallback_bytes;
  if (type == "Fuse") return fuse_tokens;
  if (type == "Replace") return replace_decoder(read_pattern(section, "pattern"), section.text("content"));
  if (type == "Strip")
    return strip_decoder(section.character("content", ' '),
                         static_cast<std::size_t>(section.count("start", 0)),
                         static_cast<std::size_t>(section.count("stop", 0)));
  fail_unknown_type(
      section, "decoder",
      "WordPiece, ByteLevel, Metaspace, BPEDecoder, ByteFallback, Fuse, Replace, Strip, Sequence");
}

}  // namespace

void read_decoder(const JsonSection& root, Pipeline& pipeline) {
  if (root.find("decoder") == nullptr) return;
  const std::vector<JsonSection> parts = all_parts(root.section("decoder"), "decoders");
  std::vector<TokenDecoder> decoders;
  for (std::size_t i = 0; i < parts.size(); ++i) decoders.push_back(read(parts[i], i + 1 == parts.size()));
  pipeline.decoder = in_sequence(std::move(decoders));
}

}  // namespace zoo
