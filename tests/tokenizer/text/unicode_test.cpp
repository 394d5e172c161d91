#include "tokenizer/text/unicode.h"

#include "tests/support/catch.h"

using namespace zoo;

TEST_CASE("categories are those of Unicode 8, whatever ICU's version") {
  CHECK(is_nonspacing_mark(0x0301));
  CHECK(is_nonspacing_mark(0x1734));        // Mc since Unicode 14
  CHECK(is_nonspacing_mark(0x1171E));       // Mc since Unicode 16
  CHECK_FALSE(is_nonspacing_mark(0x1885));  // a letter until Unicode 9
  CHECK(is_punctuation(0x166D));            // a symbol since Unicode 12
}
