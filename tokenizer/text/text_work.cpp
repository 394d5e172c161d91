#include "tokenizer/text/text_work.h"

#include <algorithm>

#include "data/base/error.h"

namespace zoo {
namespace {

// A character has 33 bytes for 3 in NFKD, and 66 after a byte-level alphabet.
constexpr std::size_t kGrowth = 32, kShortest = std::size_t{1} << 20;
// Limits for all steps together.
constexpr std::size_t kWrittenGrowth = 256, kWrittenShortest = std::size_t{1} << 24;
constexpr std::size_t kTicks = 2000, kBytesOfTick = 500;

thread_local TextWork* counted = nullptr;

}  // namespace

TextWork::TextWork(std::size_t bytes) : given_(bytes), outer_(counted) { counted = this; }

TextWork::~TextWork() { counted = outer_; }

TextWork* TextWork::current() { return counted; }

std::size_t TextWork::most_bytes() const {
  const std::size_t all = kWrittenShortest + kWrittenGrowth * given_;
  return std::min(kShortest + kGrowth * given_, all - std::min(all, written_));
}

void TextWork::wrote(std::size_t bytes) {
  if (bytes > most_bytes())
    throw Error(name_, " of tokenizer.json makes a text of ", given_, " bytes too long: more than ",
                kShortest + kGrowth * given_, " bytes, or ", kWrittenShortest + kWrittenGrowth * given_,
                " in all steps");
  written_ += bytes;
}

void TextWork::searched(std::int32_t ticks) {
  ticks_ += static_cast<std::size_t>(ticks);
  if (ticks_ > kTicks + given_ / kBytesOfTick)
    throw Error(name_, " of tokenizer.json: the expressions take too many steps for a text of ", given_,
                " bytes");
}

}  // namespace zoo
