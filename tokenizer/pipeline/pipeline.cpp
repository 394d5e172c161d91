#include "tokenizer/pipeline/pipeline.h"

#include <algorithm>

namespace zoo {

AddedToken special_token(std::string content, TokenId id) {
  return {.content = std::move(content), .id = id, .normalized = false, .special = true};
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
