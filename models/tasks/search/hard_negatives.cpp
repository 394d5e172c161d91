#include "models/tasks/search/hard_negatives.h"

#include <algorithm>
#include <limits>
#include <map>

#include <ATen/ops/matmul.h>

#include "data/base/field_error.h"

namespace zoo {
namespace {

constexpr std::int64_t kAnchorsAtOnce = 256;

// Distinct texts in the order of their first places.
struct Distinct {
  std::vector<std::string> texts;
  std::vector<std::size_t> first;    // for each text
  std::vector<std::int64_t> number;  // for each place
};

Distinct distinct(const std::vector<std::string>& all) {
  Distinct found;
  std::map<std::string_view, std::int64_t> numbers;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto [entry, is_new] = numbers.emplace(all[i], std::ssize(found.texts));
    if (is_new) {
      found.texts.push_back(all[i]);
      found.first.push_back(i);
    }
    found.number.push_back(entry->second);
  }
  return found;
}

}  // namespace

std::vector<std::vector<std::size_t>> hard_negatives(const SearchEmbedders& embedders,
                                                     const std::vector<std::string>& anchors,
                                                     const std::vector<std::string>& positives,
                                                     const HardNegativeOptions& options, const RunPass& run) {
  require_in(at_least(1), "num_negatives", options.count);
  require_in(at_least(0), "range_min", options.skipped);
  require_in(at_least(1), "batch_size", options.batch_size);
  require_in(at_least(0), "absolute_margin", options.absolute_margin);
  require_in(at_least(0), "relative_margin", options.relative_margin);
  if (anchors.empty()) return {};
  const Distinct queries = distinct(anchors), documents = distinct(positives);
  std::vector<std::vector<std::int64_t>> answers(queries.texts.size());
  for (std::size_t i = 0; i < anchors.size(); ++i)
    answers[static_cast<std::size_t>(queries.number[i])].push_back(documents.number[i]);
  const at::Tensor rows = embedders.vectors(embedders.documents, documents.texts, options.batch_size, run),
                   columns = embedders.vectors(embedders.queries, queries.texts, options.batch_size, run).t();

  constexpr double kNone = -std::numeric_limits<double>::infinity();
  std::vector<std::vector<std::size_t>> mined(queries.texts.size());
  for (std::int64_t begin = 0; begin < columns.size(1); begin += kAnchorsAtOnce) {
    const std::int64_t count = std::min(kAnchorsAtOnce, columns.size(1) - begin);
    const at::Tensor similar = at::matmul(rows, columns.narrow(1, begin, count)).t().contiguous();
    for (std::int64_t query = 0; query < count; ++query) {
      const auto place = static_cast<std::size_t>(begin + query);
      const at::Tensor scores = similar[query];
      const at::Tensor own = at::tensor(answers[place]);
      const double positive = scores.index_select(0, own).min().item<double>();
      scores.index_fill_(0, own, kNone);
      if (options.absolute_margin) scores.masked_fill_(scores.gt(positive - *options.absolute_margin), kNone);
      if (options.relative_margin)
        scores.masked_fill_(scores.gt(positive - std::abs(positive) * *options.relative_margin), kNone);
      const std::int64_t skipped = std::min(options.skipped, scores.size(0)),
                         most = std::min(options.count, scores.size(0) - skipped) + skipped;
      const auto [values, indices] = scores.topk(most);
      for (std::int64_t i = skipped; i < most && values[i].item<double>() > kNone; ++i)
        mined[place].push_back(documents.first[static_cast<std::size_t>(indices[i].item<std::int64_t>())]);
    }
  }
  std::vector<std::vector<std::size_t>> result;
  for (const std::int64_t number : queries.number) result.push_back(mined[static_cast<std::size_t>(number)]);
  return result;
}

}  // namespace zoo
