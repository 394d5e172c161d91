#include "tokenizer/pipeline/unigram_model.h"

#include <algorithm>
#include <limits>

#include "data/base/error.h"
#include "tokenizer/pipeline/unigram_segmentation.h"
#include "tokenizer/pipeline/word_cache.h"
#include "tokenizer/text/byte_level.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

constexpr TokenId kUnknown = -2;  // an unknown character if the model has no unk_id

}  // namespace

UnigramModel::UnigramModel(const std::vector<UnigramPiece>& pieces, const UnigramOptions& options)
    : unk_id_(options.unk_id), byte_fallback_(options.byte_fallback), cache_key_(new_cache_key()) {
  if (unk_id_ && (*unk_id_ < 0 || static_cast<std::size_t>(*unk_id_) >= pieces.size()))
    throw Error("unk_id is ", *unk_id_, ": expected 0 to ", pieces.size() - 1, ", as there are ",
                pieces.size(), " pieces");
  double lowest = std::numeric_limits<double>::infinity();
  std::vector<ByteTrie::Entry> entries;
  for (const UnigramPiece& piece : pieces) {
    entries.push_back({piece.text, static_cast<TokenId>(scores_.size())});
    scores_.push_back(piece.score);
    lowest = std::min(lowest, piece.score);
  }
  trie_ = ByteTrie(entries);
  unknown_score_ = lowest - UnigramSegmentation<double>::kUnknownPenalty;
  for (unsigned byte = 0; byte < bytes_.size(); ++byte)
    bytes_[byte] = trie_.find(fallback_token(static_cast<unsigned char>(byte))).value_or(ByteTrie::kNoId);
}

void UnigramModel::encode(std::string_view word, TokenIds& ids, std::vector<ByteRange>* ranges) const {
  if (ranges != nullptr) return encode_uncached(word, ids, ranges);
  WordCache& cache = thread_cache(cache_key_);
  if (cache.append(word, ids)) return;
  const std::size_t before = ids.size();
  encode_uncached(word, ids, nullptr);
  cache.insert(word, ids.data() + before, ids.size() - before);
}

void UnigramModel::encode_uncached(std::string_view word, TokenIds& ids,
                                   std::vector<ByteRange>* ranges) const {
  static thread_local UnigramSegmentation<double> best;
  const TokenId unknown = unk_id_.value_or(kUnknown);
  best.find(trie_, scores_, unknown_score_, unknown, word);
  const auto& ends = best.ends();
  std::uint32_t begin = 0;
  for (auto end = ends.rbegin(); end != ends.rend(); ++end) {
    const TokenId id = best.step(*end).id;
    if (id != unknown) {
      ids.push_back(id);
      if (ranges != nullptr) ranges->push_back({begin, *end});
    } else {
      while (end + 1 != ends.rend() && best.step(*(end + 1)).id == unknown) ++end;
      append_unknown(word.substr(begin, *end - begin), {begin, *end}, ids, ranges);
    }
    begin = *end;
  }
}

void UnigramModel::append_unknown(std::string_view text, ByteRange range, TokenIds& ids,
                                  std::vector<ByteRange>* ranges) const {
  const auto id_of_byte = [this](char c) { return bytes_[static_cast<unsigned char>(c)]; };
  const bool has_bytes =
      byte_fallback_ && std::ranges::none_of(text, [&](char c) { return id_of_byte(c) == ByteTrie::kNoId; });
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
