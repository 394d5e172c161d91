#include "tokenizer/pipeline/byte_tokenizer.h"

#include <nlohmann/json.hpp>

#include "data/base/json_file.h"
#include "tokenizer/pipeline/tokenizer_json_writer.h"
#include "tokenizer/text/byte_level.h"
#include "tokenizer/token_id.h"

namespace zoo {

using nlohmann::json;

TokenIds ByteTokenizer::text_ids(std::string_view text) const {
  require_utf8(text, "the text");
  TokenIds ids(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) ids[i] = static_cast<unsigned char>(text[i]);
  return ids;
}

Encoding ByteTokenizer::tokenize(std::string_view text, const EncodeOptions& options, bool) const {
  Encoding encoding{.ids = text_ids(text)};
  for (std::uint32_t i = 0; options.with_offsets && i < encoding.size(); ++i)
    encoding.offsets.push_back({i, i + 1});
  if (options.with_offsets) encoding.words.resize(encoding.size(), 0);
  return encoding;
}

std::string ByteTokenizer::decode(std::span<const TokenId> ids) const {
  std::string text;
  text.reserve(ids.size());
  for (const TokenId id : ids) {
    require_id(id, vocab_size());
    text += static_cast<char>(id);
  }
  return text;
}

void ByteTokenizer::save(const std::filesystem::path& directory) const {
  std::vector<std::string> pieces(256);
  for (std::size_t byte = 0; byte < pieces.size(); ++byte)
    append_utf8(pieces[byte], byte_level_character(static_cast<unsigned char>(byte)));
  // The decoder ignores its settings; these are the values that `tokenizers` writes.
  write_tokenizer_json(directory, {{"pre_tokenizer", byte_level_json(false, true, false)},
                                   {"decoder", byte_level_json(true, true, true)},
                                   {"model", bpe_model_json(pieces, json::array())}});
  write_json(directory / "tokenizer_config.json", fast_tokenizer_config());
}

}  // namespace zoo
