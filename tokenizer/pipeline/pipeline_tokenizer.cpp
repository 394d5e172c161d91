#include "tokenizer/pipeline/pipeline_tokenizer.h"

#include <algorithm>
#include <limits>
#include <unordered_set>

#include "data/base/atomic_file.h"
#include "data/base/error.h"
#include "tokenizer/pipeline/bert_words.h"
#include "tokenizer/text/text_work.h"
#include "tokenizer/text/unicode.h"
#include "tokenizer/text/utf8.h"
#include "tokenizer/token_id.h"

namespace zoo {
namespace {

std::string normalized(const Pipeline& pipeline, const std::string& content) {
  if (!pipeline.normalizer) return content;
  const TextWork work(content.size());
  AlignedText text(content, /*tracks=*/false);
  pipeline.normalizer(text);
  return text.text;
}

// Tokens that match in the normalized text, which must be normalized, or in the original.
std::vector<AddedToken> tokens_to_find(const Pipeline& pipeline, bool in_normalized) {
  std::vector<AddedToken> tokens;
  for (const AddedToken& token : pipeline.added_tokens) {
    if (token.normalized != in_normalized) continue;
    tokens.push_back(token);
    if (in_normalized) tokens.back().content = normalized(pipeline, token.content);
  }
  return tokens;
}

// How many spaces begin and end a token; in a byte-level alphabet, \u0120.
std::pair<std::size_t, std::size_t> spaces_of(std::string_view token) {
  std::size_t leading = 0, trailing = 0;
  for (std::size_t at = 0, count = 0; at < token.size(); ++count) {
    const char32_t c = next_code_point(token, at);
    const bool space = c == U'\u0120' || is_white_space(c);
    if (space && leading == count) ++leading;
    trailing = space ? trailing + 1 : 0;
  }
  return {leading, trailing};
}

}  // namespace

PipelineTokenizer::PipelineTokenizer(Pipeline pipeline, Files files)
    : pipeline_(std::move(pipeline)),
      files_(std::move(files)),
      raw_tokens_(tokens_to_find(pipeline_, /*in_normalized=*/false)),
      normalized_tokens_(tokens_to_find(pipeline_, /*in_normalized=*/true)) {
  if (pipeline_.bert && normalized_tokens_.empty())
    bert_words_ = std::make_shared<BertWords>(*pipeline_.bert);
  fill_texts();
}

void PipelineTokenizer::lowercase_texts() {
  if (pipeline_.lowercases) return;
  std::vector<Normalizer> steps{lowercase_all};
  if (pipeline_.normalizer) steps.push_back(pipeline_.normalizer);
  pipeline_.normalizer = in_sequence(std::move(steps));
  pipeline_.lowercases = true;
  // Both are shortcuts for the old normalizer.
  pipeline_.only_splits = std::nullopt;
  bert_words_.reset();
}

void PipelineTokenizer::fill_texts() {
  const auto set = [this](TokenId id, const std::string& text) {
    const auto place = static_cast<std::size_t>(id);
    if (texts_.size() <= place) texts_.resize(place + 1);
    texts_[place] = text;
  };
  std::unordered_set<std::string> special;
  for (const VocabularyEntry& entry : pipeline_.vocabulary) set(entry.id, entry.text);
  for (const AddedToken& token : pipeline_.added_tokens) {
    set(token.id, token.content);
    if (token.special) special.insert(token.content);
    if (!token.normalized) continue;
    std::string text = normalized(pipeline_, token.content);
    if (text != token.content) decoded_texts_[token.id] = std::move(text);
  }
  for (std::size_t id = 0; id < texts_.size(); ++id)
    is_special_.push_back(special.contains(decoded_text(static_cast<TokenId>(id))));
}

const std::string& PipelineTokenizer::decoded_text(TokenId id) const {
  const auto found = decoded_texts_.find(id);
  return found == decoded_texts_.end() ? texts_[static_cast<std::size_t>(id)] : found->second;
}

Encoding PipelineTokenizer::tokenize(std::string_view text, const EncodeOptions& options,
                                     bool is_second) const {
  require_utf8(text, "the text");
  if (text.size() > std::numeric_limits<std::uint32_t>::max())
    throw Error("a tokenizer encodes at most 4 GiB at once, not ", text.size(), " bytes");
  Encoding encoding;
  if (!options.with_offsets) {
    encoding.ids.reserve(text.size() / 4 + 4);
    if (encode_streaming(text, encoding.ids)) return encoding;
    encoding.ids.clear();
  }
  const SplitText split_text = split(text, options.with_offsets);
  const auto& trimming = pipeline_.offset_trimming;
  const bool follows_special = trimming && options.add_special_tokens &&
                               (is_second ? trimming->second_follows_special : trimming->follows_special);
  for (const Word& word : split_text.words) {
    if (options.with_offsets) {
      append_word(text, split_text, word, !follows_special, encoding);
    } else if (word.is_token()) {
      encoding.ids.push_back(word.id);
    } else {
      pipeline_.model->encode(split_text.view(word), encoding.ids, nullptr);
    }
  }
  return encoding;
}

// True if words are split by BERT's rules or by a known pattern, and nothing else changes the text.
bool PipelineTokenizer::streams() const {
  return (bert_words_ != nullptr || pipeline_.only_splits) && normalized_tokens_.empty();
}

// A text may be divided between a letter and a space followed by another letter: every known pattern begins a
// word there, and all three are ASCII, so no combining mark changes them. Not if an added token could begin
// or end there, or contain the space.
std::size_t PipelineTokenizer::division(std::string_view text, std::size_t from) const {
  const auto reaches_across = [](const AddedToken& token) {
    const std::string& content = token.content;
    return content.empty() || is_ascii_letter(content.front()) || is_ascii_letter(content.back()) ||
           content.find(' ') != std::string::npos;
  };
  if (!streams() || std::ranges::any_of(pipeline_.added_tokens, reaches_across)) return text.size();
  for (std::size_t i = std::max<std::size_t>(from, 1); i + 1 < text.size(); ++i)
    if (text[i] == ' ' && is_ascii_letter(text[i - 1]) && is_ascii_letter(text[i + 1])) return i;
  return text.size();
}

// Encodes word by word without copying the text, if the parts allow it.
bool PipelineTokenizer::encode_streaming(std::string_view text, TokenIds& ids) const {
  if (!streams()) return false;
  if (!raw_tokens_.may_find(text)) return encode_part(text, ids);
  SplitText parts{AlignedText(text, /*tracks=*/false), {{0, static_cast<std::uint32_t>(text.size())}}};
  raw_tokens_.split(parts);
  return std::ranges::all_of(parts.words, [&](const Word& part) {
    if (!part.is_token()) return encode_part(parts.view(part), ids);
    ids.push_back(part.id);
    return true;
  });
}

bool PipelineTokenizer::encode_part(std::string_view part, TokenIds& ids) const {
  const auto encode_word = [&](std::string_view word) { pipeline_.model->encode(word, ids, nullptr); };
  if (bert_words_ != nullptr) return bert_words_->split(part, encode_word);
  split_words(*pipeline_.only_splits, part, encode_word);
  return true;
}

SplitText PipelineTokenizer::split(std::string_view text, bool with_offsets) const {
  TextWork work(text.size());
  SplitText result;
  // Metaspace's first mark depends on a word's position in the original text, even without offsets.
  result.text = AlignedText(text, with_offsets || pipeline_.needs_source);
  if (!text.empty()) result.words.push_back({0, static_cast<std::uint32_t>(text.size())});
  raw_tokens_.split(result);
  if (pipeline_.normalizer) normalize(result);
  normalized_tokens_.split(result);
  work.begin("the pre-tokenizer");
  if (pipeline_.pre_tokenizer) pipeline_.pre_tokenizer(result);
  return result;
}

void PipelineTokenizer::normalize(SplitText& text) const {
  AlignedText whole;
  for (Word& word : text.words) {
    AlignedText part;
    part.append(text.text, word.begin, word.end - word.begin);
    if (part.tracks()) part.begin = part.source.front().begin;
    if (!word.is_token()) pipeline_.normalizer(part);
    word.begin = static_cast<std::uint32_t>(whole.text.size());
    if (text.words.size() == 1) {
      whole = std::move(part);
    } else {
      whole.append(part, 0, part.text.size());
    }
    word.end = static_cast<std::uint32_t>(whole.text.size());
  }
  text.text = std::move(whole);
  std::erase_if(text.words, [](const Word& word) { return word.begin == word.end; });
}

void PipelineTokenizer::append_word(std::string_view original, const SplitText& text, const Word& word,
                                    bool begins, Encoding& encoding) const {
  const std::size_t first = encoding.ids.size();
  if (word.is_token()) {
    encoding.ids.push_back(word.id);
    encoding.offsets.push_back({0, word.end - word.begin});
  } else {
    pipeline_.model->encode(text.view(word), encoding.ids, &encoding.offsets);
  }
  for (std::size_t i = first; i < encoding.ids.size(); ++i) {
    ByteRange& range = encoding.offsets[i];
    const ByteRange in_text = {word.begin + range.begin, word.begin + range.end};
    range = text.text.source_of(in_text);
    if (pipeline_.offset_trimming)
      range = trimmed(original, token_at(text, word, in_text, encoding.ids[i]), range, begins && i == 0);
  }
  encoding.words.resize(encoding.ids.size(), static_cast<std::int32_t>(&word - text.words.data()));
}

// `tokenizers` counts the spaces of the normalized token and moves by as many characters of the text.
ByteRange PipelineTokenizer::trimmed(std::string_view text, std::string_view token, ByteRange range,
                                     bool is_first) const {
  auto [leading, trailing] = spaces_of(token);
  const bool was_added = pipeline_.offset_trimming->add_prefix_space && (is_first || range.begin == 0);
  if (leading == 1 && was_added) leading = 0;
  std::size_t begin = range.begin, end = range.end;
  for (; leading > 0 && begin < end; --leading) begin = character_end(text, begin);
  for (; trailing > 0 && end > begin; --trailing) end = character_begin(text, end);
  return {static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)};
}

// The text of a token in `tokenizers`: of an added or an unknown one, the text that it covers.
std::string_view PipelineTokenizer::token_at(const SplitText& text, const Word& word, ByteRange range,
                                             TokenId id) const {
  const std::string_view known = texts_[static_cast<std::size_t>(id)];
  const bool is_piece = pipeline_.kind == "unigram" && !known.starts_with("<0x");
  return word.is_token() || is_piece ? text.view({range.begin, range.end}) : known;
}

std::string PipelineTokenizer::text_of(std::span<const TokenId> ids, bool skips_special) const {
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  std::size_t size = 0;
  for (const TokenId id : ids) {
    require_id(id, vocab_size());
    if (skips_special && is_special_[static_cast<std::size_t>(id)]) continue;
    const std::string& text = decoded_text(id);
    if (!text.empty()) tokens.push_back(text);
    size += text.size();
  }
  std::string text;
  if (pipeline_.decoder) {
    TextWork work(size);
    work.begin("the decoder");
    pipeline_.decoder(tokens);
    for (const std::string& token : tokens) text += token;
  } else {
    for (const std::string& token : tokens) text += (text.empty() ? "" : " ") + token;
  }
  return pipeline_.cleans_up_spaces ? clean_up_spaces(std::move(text)) : text;
}

std::string PipelineTokenizer::token_text(TokenId id) const {
  require_id(id, vocab_size());
  return decoded_text(id);
}

std::optional<TokenId> PipelineTokenizer::role_id(SpecialToken role) const {
  const auto found = pipeline_.roles.find(role);
  return found == pipeline_.roles.end() ? std::nullopt : std::optional(found->second);
}

void PipelineTokenizer::save(const std::filesystem::path& directory) const {
  for (const auto& [name, content] : files_) write_file(directory / name, content);
}

}  // namespace zoo
