#include "models/checkpoint/tied_weights.h"

#include <algorithm>

#include "models/checkpoint/weights.h"

namespace zoo {

bool same_numbers(const WeightFiles& files, const std::string& a, const std::string& b) {
  constexpr std::int64_t kRowsAtOnce = 1024;
  const TensorEntry &first = files.entry(a), &second = files.entry(b);
  if (first.dtype != second.dtype || first.shape != second.shape) return false;
  if (first.shape.size() < 2) return files.tensor(a).equal(files.tensor(b));
  const std::int64_t rows = first.shape.front();
  for (std::int64_t begin = 0; begin < rows; begin += kRowsAtOnce) {
    const std::int64_t end = std::min(begin + kRowsAtOnce, rows);
    const bool same = files.rows(a, begin, end).equal(files.rows(b, begin, end));
    files.give_back(a, begin, end);
    files.give_back(b, begin, end);
    if (!same) return false;
  }
  return true;
}

bool has_own_projection(const WeightTable& tied, const WeightTable& untied, const WeightFiles& files) {
  const StoredNames names(tied, files);
  return std::any_of(tied.tied.begin(), tied.tied.end(), [&](const auto& pair) {
    const auto is_copy = [&](const WeightName& name) { return name.theirs.front() == pair.first; };
    if (pair.first.ends_with(".bias") || std::none_of(untied.names.begin(), untied.names.end(), is_copy))
      return false;
    const std::string copy = names.stored(pair.first), original = names.stored(pair.second);
    return files.contains(copy) && files.contains(original) && !same_numbers(files, copy, original);
  });
}

}  // namespace zoo
