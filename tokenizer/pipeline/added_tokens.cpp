#include <algorithm>
#include <set>

#include "tokenizer/pipeline/pipeline.h"
#include "tokenizer/text/unicode.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

bool is_whole_word(std::string_view text, std::size_t begin, std::size_t end) {
  std::size_t at = end;
  return (begin == 0 || !is_word_character(character_before(text, begin))) &&
         (end == text.size() || !is_word_character(next_code_point(text, at)));
}

}  // namespace

AddedToken special_token(std::string content, TokenId id) {
  return {.content = std::move(content), .id = id, .normalized = false, .special = true};
}

AddedTokenFinder::AddedTokenFinder(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  // Of contents that normalization has made equal, the first special one counts, else the first.
  std::stable_partition(tokens_.begin(), tokens_.end(),
                        [](const AddedToken& token) { return token.special; });
  std::vector<ByteTrie::Entry> entries;
  std::set<std::string_view> contents;
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    const std::string& content = tokens_[i].content;
    if (content.empty() || !contents.insert(content).second) continue;
    entries.push_back({content, static_cast<TokenId>(i)});
    begins_[static_cast<unsigned char>(content[0])] = true;
  }
  trie_ = ByteTrie(entries);
}

bool AddedTokenFinder::may_find(std::string_view text) const {
  return !empty() &&
         std::ranges::any_of(text, [this](char c) { return begins_[static_cast<unsigned char>(c)]; });
}

void AddedTokenFinder::split_word(std::string_view text, std::uint32_t offset,
                                  std::vector<Word>& words) const {
  const auto push = [&](std::size_t begin, std::size_t end, TokenId id) {
    if (begin < end)
      words.push_back(
          {offset + static_cast<std::uint32_t>(begin), offset + static_cast<std::uint32_t>(end), id});
  };
  std::size_t done = 0;
  for (std::size_t at = 0; at < text.size();) {
    const bool begins = begins_[static_cast<unsigned char>(text[at])];
    const ByteTrie::Match match =
        begins ? trie_.longest(ByteTrie::kRoot, text.substr(at)) : ByteTrie::Match();
    if (match.size == 0) {
      ++at;
      continue;
    }
    const AddedToken& token = tokens_[static_cast<std::size_t>(match.id)];
    const std::size_t end = at + match.size;
    if (!token.single_word || is_whole_word(text, at, end)) {
      const std::size_t from = token.lstrip ? std::max(skip_spaces_back(text, at), done) : at;
      const std::size_t to = token.rstrip ? skip_spaces(text, end) : end;
      push(done, from, -1);
      push(from, to, token.id);
      done = to;
    }
    at = end;
  }
  push(done, text.size(), -1);
}

void AddedTokenFinder::split(SplitText& text) const {
  if (empty()) return;
  std::vector<Word> words;
  for (const Word& word : text.words) {
    if (word.is_token()) {
      words.push_back(word);
    } else {
      split_word(text.view(word), word.begin, words);
    }
  }
  text.words = std::move(words);
}

TokenRegistry::TokenRegistry(Pipeline& pipeline) : pipeline_(pipeline) {
  ids_.reserve(pipeline.vocabulary.size());
  for (const VocabularyEntry& entry : pipeline.vocabulary) ids_.insert_or_assign(entry.text, entry.id);
  for (const AddedToken& token : pipeline.added_tokens) ids_.insert_or_assign(token.content, token.id);
}

std::optional<TokenId> TokenRegistry::find(const std::string& text) const {
  const auto found = ids_.find(text);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

TokenId TokenRegistry::add(AddedToken token) {
  std::vector<AddedToken>& added = pipeline_.added_tokens;
  if (const auto id = find(token.content)) {
    token.id = *id;
  } else {
    token.id = static_cast<TokenId>(pipeline_.vocabulary.size());
    for (const AddedToken& other : added) token.id = std::max(token.id, other.id + 1);
  }
  ids_[token.content] = token.id;
  const auto same = std::ranges::find(added, token.content, &AddedToken::content);
  const TokenId id = token.id;
  if (same == added.end()) {
    added.push_back(std::move(token));
  } else {
    *same = std::move(token);
  }
  return id;
}

}  // namespace zoo
