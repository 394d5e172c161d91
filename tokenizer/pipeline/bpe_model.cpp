#include "tokenizer/pipeline/bpe_model.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <span>

#include "data/base/error.h"
#include "tokenizer/pipeline/word_cache.h"
#include "tokenizer/text/byte_level.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

// Up to this length, scanning all pairs after every merge is faster than a queue.
constexpr std::size_t kShortWord = 64;

constexpr std::uint32_t kNoMerge = std::numeric_limits<std::uint32_t>::max();
constexpr BpeMerges::Merge kNotMerged{kNoMerge, 0};

// A symbol of a long word in a linked list.
struct Node {
  BpeSymbol symbol;
  BpeMerges::Merge with_next;  // kNotMerged if the node was merged away
  std::uint32_t previous, next;
};

constexpr std::uint32_t kEnd = std::numeric_limits<std::uint32_t>::max();

// Bytes of a text in the vocabulary's spelling: GPT-2's alphabet has two for a space, one for a letter.
std::uint32_t written_size(std::string_view text, bool byte_level) {
  auto size = static_cast<std::uint32_t>(text.size());
  for (const char byte : byte_level ? text : std::string_view())
    size += byte_level_character(static_cast<unsigned char>(byte)) < 0x80 ? 0 : 1;
  return size;
}

// Converts ranges of a word in GPT-2's alphabet to ranges of its bytes. After a dropped byte, a range may
// begin or end inside a character, which it then covers.
void read_as_bytes(std::string_view word, std::span<ByteRange> ranges) {
  std::vector<std::uint32_t> bytes;  // of the word, for each of that text
  for (std::size_t i = 0; i < word.size(); ++i)
    bytes.resize(bytes.size() + written_size(word.substr(i, 1), true), static_cast<std::uint32_t>(i));
  bytes.push_back(static_cast<std::uint32_t>(word.size()));
  for (ByteRange& range : ranges) {
    const bool empty = range.begin == range.end;
    range = {bytes[range.begin], empty ? bytes[range.end] : bytes[range.end - 1] + 1};
  }
}

}  // namespace

std::size_t BpeMerges::apply(std::vector<BpeSymbol>& symbols) const {
  if (symbols.size() < 2) return 0;
  return symbols.size() <= kShortWord ? apply_by_scanning(symbols) : apply_by_queue(symbols);
}

std::size_t BpeMerges::apply_by_scanning(std::vector<BpeSymbol>& symbols) const {
  std::array<Merge, kShortWord> with_next;
  const auto look_up = [&](std::size_t left, std::size_t right) {
    const Merge* merge = find(symbols[left].id, symbols[right].id);
    return merge == nullptr ? kNotMerged : *merge;
  };
  std::size_t size = symbols.size(), looked_at = 0;
  for (std::size_t i = 0; i + 1 < size; ++i) with_next[i] = look_up(i, i + 1);
  for (;;) {
    looked_at += size;
    std::size_t best = 0;
    for (std::size_t i = 1; i + 1 < size; ++i)
      if (with_next[i].rank < with_next[best].rank) best = i;
    if (with_next[best].rank == kNoMerge) break;
    symbols[best] = {with_next[best].id, symbols[best].length + symbols[best + 1].length};
    --size;
    for (std::size_t i = best + 1; i < size; ++i) {
      symbols[i] = symbols[i + 1];
      with_next[i - 1] = with_next[i];
    }
    if (size == 1) break;
    if (best > 0) with_next[best - 1] = look_up(best - 1, best);
    if (best + 1 < size) with_next[best] = look_up(best, best + 1);
  }
  symbols.resize(size);
  return looked_at;
}

std::size_t BpeMerges::apply_by_queue(std::vector<BpeSymbol>& symbols) const {
  std::vector<Node> nodes(symbols.size());
  // Rank and position in one number, in the order of merging.
  std::priority_queue queue(std::greater<>{}, std::vector<std::uint64_t>());
  const auto link = [&](std::uint32_t left) {
    Node& node = nodes[left];
    const Merge* merge = node.next == kEnd ? nullptr : find(node.symbol.id, nodes[node.next].symbol.id);
    node.with_next = merge == nullptr ? kNotMerged : *merge;
    if (merge != nullptr) queue.push(static_cast<std::uint64_t>(merge->rank) << 32 | left);
  };

  const auto count = static_cast<std::uint32_t>(symbols.size());
  for (std::uint32_t i = 0; i < count; ++i)
    nodes[i] = {symbols[i], kNotMerged, i == 0 ? kEnd : i - 1, i + 1 == count ? kEnd : i + 1};
  for (std::uint32_t i = 0; i < count; ++i) link(i);

  std::size_t looked_at = count;
  for (; !queue.empty(); ++looked_at) {
    const std::uint64_t entry = queue.top();
    queue.pop();
    const auto place = static_cast<std::uint32_t>(entry);
    Node& node = nodes[place];
    if (node.with_next.rank != entry >> 32) continue;  // the pair no longer exists
    Node& right = nodes[node.next];
    node.symbol = {node.with_next.id, node.symbol.length + right.symbol.length};
    node.next = right.next;
    right.with_next = kNotMerged;
    if (node.next != kEnd) nodes[node.next].previous = place;
    link(place);
    if (node.previous != kEnd) link(node.previous);
  }

  symbols.clear();
  for (std::uint32_t i = 0; i != kEnd; i = nodes[i].next) symbols.push_back(nodes[i].symbol);
  return looked_at;
}

BpeModel::BpeModel(const std::vector<VocabularyEntry>& vocabulary, const MergePairs& merges,
                   BpeOptions options)
    : options_(std::move(options)), cache_key_(new_cache_key()) {
  vocabulary_.reserve(vocabulary.size());
  for (const auto& [text, id] : vocabulary) vocabulary_.insert_or_assign(text, id);
  if (options_.unk_token) unk_id_ = require_token(*options_.unk_token, "unk_token");
  read_merges(merges);
  read_characters(vocabulary);
  read_fallback_bytes();
  if (options_.ignore_merges) read_words(vocabulary);
}

TokenId BpeModel::require_token(std::string_view token, std::string_view asked_by) const {
  const auto id = token_id(token);
  if (!id) throw Error(asked_by, " needs the token '", token, "', which is not in the vocabulary");
  return *id;
}

std::optional<TokenId> BpeModel::token_id(std::string_view token) const {
  const auto found = vocabulary_.find(token);
  return found == vocabulary_.end() ? std::nullopt : std::optional(found->second);
}

void BpeModel::read_merges(const MergePairs& merges) {
  const std::size_t prefix = options_.continuing_subword_prefix.size();
  std::string joined;
  for (std::size_t rank = 0; rank < merges.size(); ++rank) {
    const auto& [left, right] = merges[rank];
    const std::string asked_by = "merge " + std::to_string(rank);
    const TokenId left_id = require_token(left, asked_by), right_id = require_token(right, asked_by);
    joined = left;
    joined.append(right, std::min(prefix, right.size()));
    merges_.insert(left_id, right_id, {static_cast<std::uint32_t>(rank), require_token(joined, asked_by)});
  }
}

// One of four positions: affixes change the first and last character of a word.
std::size_t BpeModel::place_in_word(bool is_first, bool is_last) const {
  return (is_first || options_.continuing_subword_prefix.empty() ? 0 : 1) +
         (is_last && !options_.end_of_word_suffix.empty() ? 2 : 0);
}

void BpeModel::read_characters(const std::vector<VocabularyEntry>& vocabulary) {
  characters_.resize(options_.end_of_word_suffix.empty() ? 2 : 4);
  for (std::size_t place = 0; place < characters_.size(); ++place) {
    std::string_view prefix, suffix;
    if (place % 2 == 1) prefix = options_.continuing_subword_prefix;
    if (place >= 2) suffix = options_.end_of_word_suffix;
    for (const VocabularyEntry& entry : vocabulary) {
      const std::string_view text = entry.text;
      if (text.size() <= prefix.size() + suffix.size()) continue;
      if (!text.starts_with(prefix) || !text.ends_with(suffix)) continue;
      read_character(text.substr(prefix.size(), text.size() - prefix.size() - suffix.size()), entry.id,
                     place);
    }
  }
}

void BpeModel::read_character(std::string_view text, TokenId id, std::size_t place) {
  std::size_t end = 0;
  char32_t character = next_code_point(text, end);
  if (end != text.size()) return;
  if (options_.byte_level) {
    const auto byte = byte_level_byte(character);
    if (!byte) return;
    character = *byte;
  }
  characters_[place].insert(character, id);
}

void BpeModel::read_words(const std::vector<VocabularyEntry>& vocabulary) {
  words_.reserve(vocabulary.size());
  for (const auto& [text, id] : vocabulary) {
    const auto word = options_.byte_level ? from_byte_level(text) : text;
    if (word) words_.insert_or_assign(*word, id);
  }
}

void BpeModel::read_fallback_bytes() {
  fallback_bytes_.fill(kUnknown);
  if (!options_.byte_fallback) return;
  for (unsigned byte = 0; byte < 256; ++byte)
    fallback_bytes_[byte] = token_id(fallback_token(static_cast<unsigned char>(byte))).value_or(kUnknown);
}

void BpeModel::encode(std::string_view word, TokenIds& ids, std::vector<ByteRange>* ranges) const {
  if (ranges == nullptr && thread_cache(cache_key_).append(word, ids)) return;
  static thread_local std::vector<BpeSymbol> symbols;
  encode(word, symbols);
  const std::size_t before = ids.size();
  for (const BpeSymbol& symbol : symbols) ids.push_back(symbol.id);
  if (ranges == nullptr) {
    thread_cache(cache_key_).insert(word, ids.data() + before, ids.size() - before);
  } else {
    append_ranges(word, symbols, *ranges);
  }
}

void BpeModel::append_ranges(std::string_view word, const std::vector<BpeSymbol>& symbols,
                             std::vector<ByteRange>& ranges) const {
  // With byte fallback, the bytes of a prefix or suffix are also symbols, though they are not in the word.
  const std::uint32_t size = written_size(word, options_.byte_level);
  std::uint32_t begin = 0;
  const std::size_t before = ranges.size();
  for (const BpeSymbol& symbol : symbols) {
    const std::uint32_t end = std::min(begin + symbol.length, size);
    ranges.push_back({begin, end});
    begin = end;
  }
  if (options_.byte_level) read_as_bytes(word, std::span(ranges).subspan(before));
}

void BpeModel::encode(std::string_view word, std::vector<BpeSymbol>& symbols) const {
  symbols.clear();
  if (options_.ignore_merges) {
    if (const auto found = words_.find(word); found != words_.end()) {
      symbols.push_back({found->second, written_size(word, options_.byte_level)});
      return;
    }
  }
  append_characters(word, symbols);
  merges_.apply(symbols);
}

void BpeModel::append_characters(std::string_view word, std::vector<BpeSymbol>& symbols) const {
  std::optional<std::uint32_t> unknown;  // bytes of unknown characters not yet covered by an id
  const auto flush = [&] {
    if (unknown) symbols.push_back({*unk_id_, *unknown});
    unknown.reset();
  };
  for (std::size_t at = 0, end = 0; at < word.size(); at = end) {
    end = options_.byte_level ? at + 1 : character_end(word, at);
    const std::string_view letter = word.substr(at, end - at);
    const std::uint32_t size = written_size(letter, options_.byte_level);
    const std::size_t place = place_in_word(at == 0, end == word.size());
    std::size_t begin = at;
    const char32_t character =
        options_.byte_level ? static_cast<unsigned char>(word[at]) : next_code_point(word, begin);
    const TokenId id = characters_[place].find(character);
    if (id != kUnknown) {
      flush();
      symbols.push_back({id, size});
    } else if (append_fallback(letter, place, symbols)) {
      continue;  // a preceding unknown character remains pending, as in `tokenizers`
    } else if (unk_id_) {
      if (!options_.fuse_unk) flush();
      unknown = unknown.value_or(0) + size;
    }
  }
  flush();
}

// Appends the bytes of a character if each is a token.
bool BpeModel::append_fallback(std::string_view character, std::size_t place,
                               std::vector<BpeSymbol>& symbols) const {
  if (!options_.byte_fallback) return false;
  const std::string text = written(character, place);
  const auto id_of = [this](char byte) { return fallback_bytes_[static_cast<unsigned char>(byte)]; };
  if (std::ranges::any_of(text, [&](char byte) { return id_of(byte) == kUnknown; })) return false;
  for (const char byte : text) symbols.push_back({id_of(byte), 1});
  return true;
}

// A character in the vocabulary's spelling at that position.
std::string BpeModel::written(std::string_view character, std::size_t place) const {
  std::string text = place % 2 == 1 ? options_.continuing_subword_prefix : "";
  text += options_.byte_level ? to_byte_level(character) : std::string(character);
  return place >= 2 ? text + options_.end_of_word_suffix : text;
}

}  // namespace zoo
