#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>

#include "apps/training/metrics/task_metrics.h"

namespace zoo {
namespace {

constexpr std::size_t kLongest = 4;

using Counts = std::map<std::vector<std::string>, std::int64_t>;

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

Counts grams_of(const std::vector<std::string>& words, std::size_t length) {
  Counts counts;
  for (std::size_t i = 0; i + length <= words.size(); ++i)
    ++counts[{words.begin() + static_cast<std::ptrdiff_t>(i),
              words.begin() + static_cast<std::ptrdiff_t>(i + length)}];
  return counts;
}

}  // namespace

double bleu(const std::vector<std::string>& written, const std::vector<std::string>& wanted) {
  double right[kLongest] = {}, all[kLongest] = {}, written_words = 0, wanted_words = 0;
  for (std::size_t i = 0; i < written.size(); ++i) {
    const std::vector<std::string> mine = words_of(written[i]), reference = words_of(wanted[i]);
    written_words += static_cast<double>(mine.size());
    wanted_words += static_cast<double>(reference.size());
    for (std::size_t n = 0; n < kLongest; ++n) {
      const Counts known = grams_of(reference, n + 1);
      for (const auto& [gram, count] : grams_of(mine, n + 1)) {
        const auto found = known.find(gram);
        all[n] += static_cast<double>(count);
        if (found != known.end()) right[n] += static_cast<double>(std::min(count, found->second));
      }
    }
  }
  double logarithm = 0;
  for (std::size_t n = 0; n < kLongest; ++n) {
    if (right[n] == 0) return 0;
    logarithm += std::log(right[n] / all[n]) / kLongest;
  }
  return std::exp(logarithm + std::min(0.0, 1 - wanted_words / written_words));
}

}  // namespace zoo
