#include "data/tokens/packing.h"

#include "data/base/error.h"
#include "tests/support/catch.h"

using namespace zoo;

namespace {

using Rows = std::vector<std::vector<std::size_t>>;

// begin, length of each part, one after another
std::vector<std::int64_t> parts_of(TokenIds ids, std::int64_t longest) {
  std::vector<std::int64_t> all;
  for (const auto& [begin, length] : document_parts(TokenFile(std::move(ids), "ids"), /*end=*/9, longest)) {
    all.push_back(static_cast<std::int64_t>(begin));
    all.push_back(length);
  }
  return all;
}

}  // namespace

TEST_CASE("a document is predicted from the end token before it to its own") {
  // 1 2 9 | 3 9 | 4: the first predicts 2 and 9, the second, from 9, 3 and 9, the third, without an end, 4.
  CHECK(parts_of({1, 2, 9, 3, 9, 4}, 8) == std::vector<std::int64_t>{0, 2, 2, 2, 4, 1});
  CHECK(parts_of({1, 2, 9}, 8) == std::vector<std::int64_t>{0, 2});
  CHECK(parts_of({9, 9, 5, 9}, 8) == std::vector<std::int64_t>{0, 1, 1, 2});
  CHECK_THROWS_WITH(parts_of({1, 2}, 8), "ids: no document ends in the end token, 9");
}

TEST_CASE("a document longer than a row is cut into parts that predict every id once") {
  CHECK(parts_of({1, 2, 3, 4, 5, 6, 7, 9, 8, 9}, 3) == std::vector<std::int64_t>{0, 3, 3, 3, 6, 1, 7, 2});
}

TEST_CASE("each document goes to the fullest row that has room for it, the longest first") {
  CHECK(pack_best_fit({6, 3, 5, 4, 2}, 10) == Rows{{0, 3}, {2, 1, 4}});
  CHECK(pack_best_fit({7, 6, 3}, 10) == Rows{{0, 2}, {1}});  // into the row with 3 left, not with 4
  CHECK(pack_best_fit({5, 5, 5}, 5) == Rows{{0}, {1}, {2}});
  CHECK(pack_best_fit({}, 5).empty());
  CHECK_THROWS_WITH(pack_best_fit({6}, 5), "a document of 6 tokens does not fit into a row of 5");
  CHECK_THROWS_WITH(pack_best_fit({0}, 5), "a document of 0 tokens does not fit into a row of 5");
}
