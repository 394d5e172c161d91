#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/message_of.h"
#include "tests/support/write_bytes.h"
#include "tokenizer/text/utf8.h"
#include "tokenizer/tokenizer.h"

namespace zoo::test {

using Ids = TokenIds;

inline std::filesystem::path golden(const std::string& name) {
  return std::filesystem::path(ZOO_SOURCE_DIR) / "tests" / "golden" / "tokenizer" / name;
}

inline std::string read_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE(file.good());
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The text with U+FFFD for invalid UTF-8, as Python shows bytes.
inline std::string replaced(std::string_view text) { return replace_invalid_utf8(text); }

/// The kind of tokenizer.json that Llama 2 has: byte fallback, whose tokens stand before the letters.
inline std::string llama_tokenizer_json() {
  std::string vocabulary = R"("<unk>": 0)";
  auto add = [&, id = 1](const std::string& token) mutable {
    vocabulary += ", \"" + token + "\": " + std::to_string(id++);
  };
  constexpr const char* kDigits = "0123456789ABCDEF";
  for (int byte = 0; byte < 256; ++byte)
    add(std::string("<0x") + kDigits[byte / 16] + kDigits[byte % 16] + ">");
  for (const char* token : {"\u2581", "a", "b", "\u2581b"}) add(token);
  return R"({"normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"},
    "model": {"type": "BPE", "byte_fallback": true, "unk_token": "<unk>", "merges": ["\u2581 b"], "vocab": {)" +
         vocabulary + R"(}}, "decoder": {"type": "Sequence", "decoders": [
    {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}, {"type": "ByteFallback"},
    {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}})";
}

/// Texts that are easily changed by mistake.
inline std::vector<std::string> difficult_texts() {
  return {
      "",
      "plain",
      "two\r\nlines\rand\n\n",
      "  spaces  \t tabs ",
      std::string("a\0b\0", 4),
      "ภาษาไทย น้ำ",                                   // Thai, with marks above and below
      "שָׁלוֹם مرحبا \u202Eabc\u202C",                   // right to left, points, an override
      "👩‍👩‍👧‍👦 👍🏽 🇨🇭",  // joined by U+200D, with a skin tone, two regional
                                                      // indicators
      "e\u0301 é \uFEFF \uFFFD \U0010FFFF",
  };
}

}  // namespace zoo::test
