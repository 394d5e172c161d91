#include "tokenizer/encoding.h"

#include <algorithm>
#include <sstream>

#include "data/base/error.h"

namespace zoo {
namespace {

using Piece = EncodingTemplate::Piece;

std::size_t num_special_tokens(std::span<const Piece> pieces) {
  std::size_t count = 0;
  for (const Piece& piece : pieces) count += piece.ids.size();
  return count;
}

// Tokens begin ... end - 1 of a text.
Encoding part_of(const Encoding& text, std::size_t begin, std::size_t end) {
  const auto part = [begin, end](const auto& values) {
    using Values = std::decay_t<decltype(values)>;
    const auto first = values.begin();
    return values.empty()
               ? Values()
               : Values(first + static_cast<std::ptrdiff_t>(begin), first + static_cast<std::ptrdiff_t>(end));
  };
  return {.ids = part(text.ids), .offsets = part(text.offsets), .words = part(text.words)};
}

void cut(Encoding& encoding, std::size_t size, bool left) {
  if (size >= encoding.size()) return;
  encoding = left ? part_of(encoding, encoding.size() - size, encoding.size()) : part_of(encoding, 0, size);
}

// Cuts the longer text first, until both have `room` tokens together; it keeps the odd one of both.
void cut_longest(Encoding& first, Encoding& second, std::size_t room, bool left) {
  const bool swapped = first.size() > second.size();
  Encoding& shorter = swapped ? second : first;
  Encoding& longer = swapped ? first : second;
  const std::size_t kept = std::min(shorter.size(), room / 2);
  cut(shorter, kept, left);
  cut(longer, room - kept, left);
}

// Returns false if all tokens have room.
bool truncate(Encoding& first, Encoding* second, std::size_t room, const EncodeOptions& options) {
  const Truncation how = options.truncation;
  const bool left = options.truncates_left;
  const std::size_t size = first.size() + (second != nullptr ? second->size() : 0);
  if (size <= room) return false;
  if (second == nullptr) {
    if (how == Truncation::only_second) throw Error("there is no second text to truncate");
    cut(first, room, left);
    return true;
  }
  if (how == Truncation::longest_first) {
    cut_longest(first, *second, room, left);
    return true;
  }
  Encoding& cut_one = how == Truncation::only_first ? first : *second;
  const std::size_t excess = size - room;
  if (excess >= cut_one.size())
    throw Error("a text of ", cut_one.size(), " tokens cannot be cut by ", excess,
                " so that the pair fits max_length");
  cut(cut_one, cut_one.size() - excess, left);
  return true;
}

void append(Encoding& whole, const Encoding& part, std::int32_t type_id, std::int8_t text) {
  const auto add = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
  add(whole.ids, part.ids);
  add(whole.offsets, part.offsets);
  add(whole.words, part.words);
  whole.type_ids.resize(whole.ids.size(), type_id);
  whole.texts.resize(whole.ids.size(), text);
}

Encoding special_tokens(const TokenIds& ids, bool with_offsets) {
  Encoding part{.ids = ids};
  if (with_offsets) {
    part.offsets.resize(ids.size());
    part.words.resize(ids.size(), -1);
  }
  return part;
}

}  // namespace

EncodingTemplate template_of(const std::string& single, const std::string& pair,
                             const std::map<std::string, TokenIds>& special) {
  const auto pieces_of = [&](const std::string& words) {
    std::vector<Piece> pieces;
    std::istringstream stream(words);
    for (std::string word; stream >> word;) {
      const std::int32_t type_id = word.ends_with(":1") ? 1 : 0;
      if (type_id == 1) word.resize(word.size() - 2);
      if (word == "A" || word == "B") {
        pieces.push_back({word == "A" ? Piece::Kind::first_text : Piece::Kind::second_text, type_id, {}});
      } else if (!special.at(word).empty()) {
        pieces.push_back({Piece::Kind::special, type_id, special.at(word)});
      }
    }
    return pieces;
  };
  return {pieces_of(single), pieces_of(pair)};
}

const EncodingTemplate& plain_template() {
  static const EncodingTemplate plain = template_of("A", "A B:1", {});
  return plain;
}

EncodingTemplate bert_template(TokenId cls, TokenId sep) {
  return template_of("cls A sep", "cls A sep B:1 sep:1", {{"cls", {cls}}, {"sep", {sep}}});
}

EncodingTemplate roberta_template(TokenId cls, TokenId sep) {
  return template_of("cls A sep", "cls A sep sep B sep", {{"cls", {cls}}, {"sep", {sep}}});
}

Encoding assemble(std::span<const Piece> pieces, Encoding first, Encoding* second,
                  const EncodeOptions& options) {
  const std::size_t added = options.add_special_tokens ? num_special_tokens(pieces) : 0;
  Encoding whole;
  if (options.max_length) {
    if (*options.max_length < added)
      throw Error("max_length ", *options.max_length, " has no room for the ", added, " special tokens");
    whole.cut = truncate(first, second, *options.max_length - added, options);
  }
  const bool has_offsets = first.offsets.size() == first.size() && options.with_offsets;
  for (const Piece& piece : pieces) {
    if (piece.kind == Piece::Kind::first_text) append(whole, first, piece.type_id, 0);
    if (piece.kind == Piece::Kind::second_text && second != nullptr) append(whole, *second, piece.type_id, 1);
    if (piece.kind == Piece::Kind::special && options.add_special_tokens)
      append(whole, special_tokens(piece.ids, has_offsets), piece.type_id, -1);
  }
  return whole;
}

std::vector<Encoding> assemble_windows(std::span<const Piece> pieces, const Encoding& first,
                                       const Encoding& second, std::size_t stride,
                                       const EncodeOptions& options) {
  const std::size_t taken = first.size() + (options.add_special_tokens ? num_special_tokens(pieces) : 0);
  const std::size_t size = second.size(), most = options.max_length.value_or(taken + size);
  const EncodeOptions whole{.add_special_tokens = options.add_special_tokens,
                            .with_offsets = options.with_offsets};
  std::vector<Encoding> windows;
  const auto add = [&](std::size_t begin, std::size_t end) {
    Encoding part = part_of(second, begin, end);
    windows.push_back(assemble(pieces, first, &part, whole));
  };
  if (taken + size <= most) {
    add(0, size);
    return windows;
  }
  if (most <= taken + stride)
    throw Error("windows of ", most, " tokens, of which ", stride,
                " are shared, have no room for more beside a text of ", first.size(), " tokens and ",
                taken - first.size(), " special tokens");
  const std::size_t room = most - taken;
  for (std::size_t done = 0;; done += room - stride) {
    const std::size_t begin = done, end = std::min(done + room, size);
    options.truncates_left ? add(size - end, size - begin) : add(begin, end);
    if (end == size) return windows;
  }
}

}  // namespace zoo
