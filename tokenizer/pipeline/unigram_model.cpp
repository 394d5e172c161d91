#include "tokenizer/pipeline/unigram_model.h"

#include <algorithm>
#include <cstdio>
#include <limits>

#include "data/base/error.h"
#include "tokenizer/pipeline/word_cache.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

constexpr double kUnknownPenalty = 10.0;
constexpr TokenId kUnknown = -2;  // inside a way: no piece, whatever unk_id is

ByteTrie trie_of(const std::vector<UnigramPiece>& pieces) {
  std::vector<ByteTrie::Entry> entries;
  for (std::size_t id = 0; id < pieces.size(); ++id)
    entries.push_back({pieces[id].text, static_cast<TokenId>(id)});
  return ByteTrie(entries);
}

std::size_t character_size(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

}  // namespace

UnigramModel::UnigramModel(const std::vector<UnigramPiece>& pieces, const UnigramOptions& options)
    : trie_(trie_of(pieces)),
      unk_id_(options.unk_id),
      byte_fallback_(options.byte_fallback),
      cache_key_(new_cache_key()) {
  if (unk_id_ && (*unk_id_ < 0 || static_cast<std::size_t>(*unk_id_) >= pieces.size())) {
    throw Error("unk_id is ", *unk_id_, ": expected 0 to ", pieces.size() - 1, ", as there are ",
                pieces.size(), " pieces");
  }
  double lowest = std::numeric_limits<double>::infinity();
  for (const UnigramPiece& piece : pieces) {
    scores_.push_back(piece.score);
    lowest = std::min(lowest, piece.score);
  }
  unknown_score_ = lowest - kUnknownPenalty;
  for (unsigned byte = 0; byte < bytes_.size(); ++byte) {
    char text[8];
    std::snprintf(text, sizeof text, "<0x%02X>", byte);
    bytes_[byte] = trie_.find(text).value_or(ByteTrie::kNoId);
  }
}

// ways[end]: the last step of the best way to `end`. Of equally good ones the step that begins first stays.
void UnigramModel::find_best_way(std::string_view word, std::vector<Step>& ways) const {
  ways.assign(word.size() + 1, {});
  const auto offer = [&ways](std::size_t end, double score, TokenId id, std::size_t begin) {
    Step& step = ways[end];
    if (step.id == ByteTrie::kNoId || score > step.score)
      step = {score, id, static_cast<std::uint32_t>(begin)};
  };
  for (std::size_t begin = 0; begin < word.size();) {
    const std::size_t next = begin + character_size(word[begin]);
    const double so_far = ways[begin].score;
    bool is_known = false;
    ByteTrie::Node node = ByteTrie::kRoot;
    for (std::size_t at = begin; at < word.size();) {
      node = trie_.child(node, static_cast<unsigned char>(word[at++]));
      if (node == ByteTrie::kNoNode) break;
      const TokenId id = trie_.id(node);
      if (id == ByteTrie::kNoId) continue;
      offer(at, scores_[static_cast<std::size_t>(id)] + so_far, id == unk_id_ ? kUnknown : id, begin);
      is_known = is_known || at == next;
    }
    if (!is_known) offer(next, unknown_score_ + so_far, kUnknown, begin);
    begin = next;
  }
}

void UnigramModel::encode(std::string_view word, std::vector<TokenId>& ids,
                          std::vector<ByteRange>* ranges) const {
  if (ranges != nullptr) return encode_anew(word, ids, ranges);
  WordCache& cache = thread_cache(cache_key_);
  if (cache.append(word, ids)) return;
  const std::size_t before = ids.size();
  encode_anew(word, ids, nullptr);
  cache.insert(word, ids.data() + before, ids.size() - before);
}

void UnigramModel::encode_anew(std::string_view word, std::vector<TokenId>& ids,
                               std::vector<ByteRange>* ranges) const {
  static thread_local std::vector<Step> ways;
  static thread_local std::vector<std::uint32_t> ends;
  find_best_way(word, ways);
  ends.clear();
  for (std::size_t end = word.size(); end > 0; end = ways[end].begin)
    ends.push_back(static_cast<std::uint32_t>(end));
  std::uint32_t begin = 0;
  for (auto end = ends.rbegin(); end != ends.rend(); ++end) {
    const TokenId id = ways[*end].id;
    if (id != kUnknown) {
      ids.push_back(id);
      if (ranges != nullptr) ranges->push_back({begin, *end});
    } else {
      while (end + 1 != ends.rend() && ways[*(end + 1)].id == kUnknown) ++end;
      append_unknown(word.substr(begin, *end - begin), {begin, *end}, ids, ranges);
    }
    begin = *end;
  }
}

void UnigramModel::append_unknown(std::string_view text, ByteRange range, std::vector<TokenId>& ids,
                                  std::vector<ByteRange>* ranges) const {
  const auto id_of_byte = [this](char c) { return bytes_[static_cast<unsigned char>(c)]; };
  const bool has_bytes = byte_fallback_ && std::none_of(text.begin(), text.end(), [&](char c) {
                           return id_of_byte(c) == ByteTrie::kNoId;
                         });
  if (const auto id = trie_.find(text)) {
    ids.push_back(*id);
  } else if (has_bytes) {
    for (const char c : text) ids.push_back(id_of_byte(c));
  } else if (unk_id_) {
    ids.push_back(*unk_id_);
  } else {
    std::size_t at = 0;
    throw Error("the character ", describe_character(next_code_point(text, at)),
                " is not in the vocabulary, which has no unk_id");
  }
  if (ranges != nullptr) ranges->resize(ids.size(), range);
}

}  // namespace zoo
