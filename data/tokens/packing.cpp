#include "data/tokens/packing.h"

#include <algorithm>
#include <map>

#include "data/base/error.h"
#include "data/base/sizes.h"

namespace zoo {

std::vector<DocumentPart> document_parts(const TokenFile& tokens, TokenId end, std::int64_t longest,
                                         std::optional<TokenId> first) {
  std::vector<DocumentPart> parts;
  std::size_t begin = 0;
  bool found = false;
  const auto cut_until = [&](std::size_t last) {
    while (begin < last) {
      const auto length = std::min(longest, static_cast<std::int64_t>(last - begin));
      parts.push_back({begin, length});
      begin += static_cast<std::size_t>(length);
    }
  };
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] != end) continue;
    found = true;
    cut_until(i);
    if (i + 1 < tokens.size() && tokens[i + 1] == first) ++begin;
  }
  if (!found) throw Error(tokens.name(), ": no document ends in the end token, ", end);
  cut_until(tokens.size() - 1);
  return parts;
}

std::vector<std::vector<std::size_t>> pack_best_fit(const std::vector<std::int64_t>& lengths,
                                                    std::int64_t capacity) {
  std::vector<std::size_t> order = indices_below(lengths.size());
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return lengths[a] > lengths[b]; });
  std::vector<std::vector<std::size_t>> rows;
  std::map<std::int64_t, std::vector<std::size_t>> with_room;  // rows by what is left of them
  for (const std::size_t part : order) {
    const std::int64_t length = lengths[part];
    if (length < 1 || length > capacity)
      throw Error("a document of ", length, " tokens does not fit into a row of ", capacity);
    const auto fullest = with_room.lower_bound(length);
    std::int64_t left = capacity;
    std::size_t row = rows.size();
    if (fullest == with_room.end()) {
      rows.emplace_back();
    } else {
      left = fullest->first;
      row = fullest->second.back();
      fullest->second.pop_back();
      if (fullest->second.empty()) with_room.erase(fullest);
    }
    rows[row].push_back(part);
    if (left > length) with_room[left - length].push_back(row);
  }
  return rows;
}

}  // namespace zoo
