#include "data/tokens/text_blocks.h"

#include <algorithm>
#include <utility>

#include "data/base/error.h"

namespace zoo {
namespace {

constexpr std::size_t kCheckedAtOnce = 1 << 20, kBytesOfToken = 4;

}  // namespace

TextBlocks::TextBlocks(std::string_view text, TextEncoder encoder, std::string name,
                       std::function<void(std::string_view part)> check)
    : text_(text), encoder_(std::move(encoder)), name_(std::move(name)) {
  if (!check) return;
  checking_ = std::thread([this, check = std::move(check)] {
    try {
      for (std::size_t begin = 0, end = 0; begin < text_.size() && !ends_; begin = end) {
        end = encoder_.division(text_, std::min(begin + kCheckedAtOnce, text_.size()));
        check(text_.substr(begin, end - begin));
      }
    } catch (...) {
      fault_ = std::current_exception();
      is_faulty_ = true;
    }
  });
}

TextBlocks::~TextBlocks() {
  ends_ = true;
  if (checking_.joinable()) checking_.join();
}

void TextBlocks::read(std::size_t byte, std::span<std::int64_t> ids) const {
  if (is_faulty_) std::rethrow_exception(fault_);
  // The smallest part that holds the byte.
  std::size_t begin = byte + 1, end = 0;
  for (std::size_t back = 1 << 10; begin > byte; back *= 4)
    begin = byte > back ? encoder_.division(text_, byte - back) : 0;
  while ((end = encoder_.division(text_, begin + 1)) <= byte) begin = end;
  TokenIds part = encoder_.encode(text_.substr(begin, end - begin));
  std::size_t next = part.size() * (byte - begin) / (end - begin), filled = 0;
  for (bool is_new = true;;) {
    for (; next < part.size() && filled < ids.size(); ++next) ids[filled++] = part[next];
    if (filled == ids.size()) return;
    if (end == text_.size() && !std::exchange(is_new, filled > 0))
      throw Error(name_, ": none of its texts has a token");
    begin = end == text_.size() ? 0 : end;
    end = encoder_.division(text_, std::min(begin + kBytesOfToken * (ids.size() - filled), text_.size()));
    part = encoder_.encode(text_.substr(begin, end - begin));
    next = 0;
  }
}

}  // namespace zoo
