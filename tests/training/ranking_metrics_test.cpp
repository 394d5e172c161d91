#include "apps/training/metrics/ranking_metrics.h"

#include <cmath>

#include "tests/support/catch.h"

using namespace zoo;

namespace {

RankingFigures figures(const std::vector<double>& gains) { return ranking_figures(gains); }

double correlation(const std::vector<double>& x, const std::vector<double>& y) { return spearman(x, y); }

}  // namespace

TEST_CASE("figures of a ranking, computed by hand") {
  // One relevant document, in third place.
  CHECK(figures({0, 0, 1, 0}).accuracy == 0);
  CHECK(figures({0, 0, 1, 0}).mrr == Approx(1.0 / 3));
  CHECK(figures({0, 0, 1, 0}).ndcg == Approx(0.5));
  // Gains of 1, 0, 3, 2: the best order would be 3, 2, 1.
  const double best = 3 + 2 / std::log2(3) + 0.5;
  CHECK(figures({1, 0, 3, 2}).ndcg == Approx((1 + 1.5 + 2 / std::log2(5)) / best));
  CHECK(figures({1, 0, 3, 2}).accuracy == 1);
  CHECK(figures({1, 0, 3, 2}).mrr == 1);
  // The tenth place counts, the eleventh does not.
  std::vector<double> tenth(10), eleventh(11);
  tenth.back() = eleventh.back() = 1;
  CHECK(figures(tenth).mrr == Approx(0.1));
  CHECK(figures(tenth).ndcg == Approx(1 / std::log2(11)));
  CHECK(figures(eleventh).mrr == 0);
  CHECK(figures(eleventh).ndcg == 0);
  CHECK(figures({0, 0}).ndcg == 0);
  // Two of four relevant documents are among the first ten.
  CHECK(figures({0, 2, 0, 0, 0, 0, 0, 0, 0, 1, 3, 1}).recall == 0.5);
  CHECK(figures(eleventh).recall == 0);
}

TEST_CASE("Spearman's correlation: the ranks', equal values sharing theirs") {
  CHECK(correlation({1, 2, 30}, {-5, 0.1, 0.2}) == Approx(1));
  CHECK(correlation({1, 2, 3}, {3, 2, 1}) == Approx(-1));
  // 1 - 6 (0 + 1 + 1 + 0) / (4 (16 - 1))
  CHECK(correlation({10, 20, 30, 40}, {1, 3, 2, 4}) == Approx(0.8));
  // Ranks 1, 2.5, 2.5, 4 and 1, 2, 3, 4: 4.5 / sqrt(4.5 * 5).
  CHECK(correlation({1, 2, 2, 3}, {1, 2, 3, 4}) == Approx(4.5 / std::sqrt(4.5 * 5)));
  CHECK(correlation({1, 1, 1}, {1, 2, 3}) == 0);
}
