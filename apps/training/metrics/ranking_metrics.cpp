#include "apps/training/metrics/ranking_metrics.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "data/base/sizes.h"

namespace zoo {
namespace {

constexpr std::size_t kRanks = 10;

double gained(std::span<const double> gains) {
  double sum = 0;
  for (std::size_t i = 0; i < std::min(kRanks, gains.size()); ++i)
    sum += gains[i] / std::log2(static_cast<double>(i) + 2);
  return sum;
}

// Ranks from 1, equal values sharing their mean.
std::vector<double> ranks_of(std::span<const double> values) {
  std::vector<std::size_t> order = indices_below(values.size());
  std::ranges::sort(order, {}, [&](std::size_t i) { return values[i]; });
  std::vector<double> ranks(values.size());
  for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    ++end;  // NaN equals nothing
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    for (std::size_t i = begin; i < end; ++i) ranks[order[i]] = static_cast<double>(begin + end + 1) / 2;
  }
  return ranks;
}

}  // namespace

RankingFigures ranking_figures(std::span<const double> gains) {
  RankingFigures figures;
  const auto relevant = [](double gain) { return gain > 0; };
  const auto first = std::ranges::find_if(gains, relevant);
  const auto before = static_cast<std::size_t>(first - gains.begin());
  if (before == gains.size()) return figures;
  figures.accuracy = before == 0 ? 1 : 0;
  figures.mrr = before < kRanks ? 1 / static_cast<double>(before + 1) : 0;
  std::vector<double> best(gains.begin(), gains.end());
  std::ranges::sort(best, std::greater<>());
  figures.ndcg = gained(gains) / gained(best);
  figures.recall =
      static_cast<double>(std::ranges::count_if(gains.first(std::min(kRanks, gains.size())), relevant)) /
      static_cast<double>(std::ranges::count_if(gains, relevant));
  return figures;
}

std::vector<Score> mean_figures(std::span<const std::vector<double>> queries) {
  std::vector<Score> means{{"accuracy"}, {"mrr_at_10"}, {"ndcg_at_10"}, {"recall_at_10"}};
  for (const std::vector<double>& gains : queries) {
    const RankingFigures figures = ranking_figures(gains);
    means[0].value += figures.accuracy;
    means[1].value += figures.mrr;
    means[2].value += figures.ndcg;
    means[3].value += figures.recall;
  }
  for (Score& mean : means) mean.value /= static_cast<double>(queries.size());
  return means;
}

double spearman(std::span<const double> x, std::span<const double> y) {
  const std::vector<double> a = ranks_of(x), b = ranks_of(y);
  const double mean = static_cast<double>(a.size() + 1) / 2;
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - mean) * (b[i] - mean);
    aa += (a[i] - mean) * (a[i] - mean);
    bb += (b[i] - mean) * (b[i] - mean);
  }
  return aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : 0;
}

}  // namespace zoo
