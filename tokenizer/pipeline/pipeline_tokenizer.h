#pragma once

#include <memory>
#include <unordered_map>

#include "tokenizer/pipeline/pipeline.h"

namespace zoo {

class BertWords;

/// A tokenizer made of the parts in tokenizer.json or the older files.
class PipelineTokenizer final : public Tokenizer {
 public:
  /// File names and contents for save().
  using Files = std::map<std::string, std::string>;

  PipelineTokenizer(Pipeline pipeline, Files files);

  std::string_view kind() const override { return pipeline_.kind; }
  std::int64_t vocab_size() const override { return static_cast<std::int64_t>(texts_.size()); }
  std::size_t division(std::string_view text, std::size_t from) const override;
  std::string token_text(TokenId id) const override;
  std::optional<TokenId> role_id(SpecialToken role) const override;
  bool marks_subwords() const override { return pipeline_.marks_subwords; }
  const std::vector<AddedToken>& added_tokens() const { return pipeline_.added_tokens; }
  const Tokenizer* target() const { return pipeline_.target.get(); }
  void lowercase_texts() override;
  void save(const std::filesystem::path& directory) const override;

 protected:
  Encoding tokenize(std::string_view text, const EncodeOptions& options, bool is_second) const override;
  std::string text_of(std::span<const TokenId> ids, bool skips_special) const override;
  const EncodingTemplate& encoding_template() const override { return pipeline_.encoding_template; }

 private:
  SplitText split(std::string_view text, bool with_offsets) const;
  void normalize(SplitText& text) const;
  void append_word(std::string_view original, const SplitText& text, const Word& word, bool begins,
                   Encoding& encoding) const;
  std::string_view token_at(const SplitText& text, const Word& word, ByteRange range, TokenId id) const;
  ByteRange trimmed(std::string_view text, std::string_view token, ByteRange range, bool is_first) const;
  bool streams() const;
  bool encode_streaming(std::string_view text, TokenIds& ids) const;
  bool encode_part(std::string_view part, TokenIds& ids) const;
  void fill_texts();
  const std::string& decoded_text(TokenId id) const;

  Pipeline pipeline_;
  Files files_;
  AddedTokenFinder raw_tokens_, normalized_tokens_;
  std::vector<std::string> texts_;                          // by id; "" for unused ids
  std::unordered_map<TokenId, std::string> decoded_texts_;  // of added tokens that the normalizer changes
  std::vector<bool> is_special_;
  std::shared_ptr<const BertWords> bert_words_;
};

}  // namespace zoo
