#include "data/tokens/encode_parts.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "data/base/error.h"
#include "data/base/processors.h"

namespace zoo {
namespace {

constexpr std::size_t kPartBytes = std::size_t{1} << 20;

// Parts of a text that threads encode ahead of the consumer.
class Parts {
 public:
  Parts(std::string_view text, const TextEncoder& encoder, std::size_t ahead)
      : text_(text), encoder_(encoder), slots_(ahead) {}

  // Encodes parts until there are none, or stop().
  void work() {
    while (const std::optional<Part> part = next()) {
      Slot slot{.end = part->end};
      try {
        slot.ids = encoder_.encode(text_.substr(part->begin, part->end - part->begin));
      } catch (...) {
        slot.error = std::current_exception();
      }
      const std::lock_guard lock(mutex_);
      slots_[part->number % slots_.size()] = std::move(slot);
      changed_.notify_all();
    }
  }

  void take_all(const TakeIds& take) {
    for (std::size_t end = 0; end < text_.size();) {
      Slot slot;
      {
        std::unique_lock lock(mutex_);
        std::optional<Slot>& next = slots_[taken_ % slots_.size()];
        changed_.wait(lock, [&] { return next.has_value(); });
        slot = *std::exchange(next, std::nullopt);
        ++taken_;
        changed_.notify_all();
      }
      if (slot.error) fail(slot.error, end);
      take(slot.ids, end = slot.end);
    }
  }

  void stop() {
    const std::lock_guard lock(mutex_);
    begin_ = text_.size();
    changed_.notify_all();
  }

 private:
  struct Part {
    std::size_t number, begin, end;
  };
  struct Slot {
    TokenIds ids;
    std::size_t end = 0;
    std::exception_ptr error;
  };

  // The tokenizer's message counts from the beginning of its part.
  [[noreturn]] static void fail(const std::exception_ptr& error, std::size_t begin) {
    try {
      std::rethrow_exception(error);
    } catch (const Error& fault) {
      if (begin == 0) throw;
      throw Error("after byte ", begin, ": ", fault.what());
    }
  }

  std::optional<Part> next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return begin_ == text_.size() || number_ < taken_ + slots_.size(); });
    if (begin_ == text_.size()) return std::nullopt;
    const std::size_t begin = begin_, least = std::min(begin + kPartBytes, text_.size());
    begin_ = encoder_.division(text_, least);
    return Part{number_++, begin, begin_};
  }

  const std::string_view text_;
  const TextEncoder& encoder_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::optional<Slot>> slots_;  // by number of the part
  std::size_t number_ = 0, begin_ = 0;      // of the next part
  std::size_t taken_ = 0;                   // parts
};

}  // namespace

TextEncoder TextEncoder::of(const Tokenizer& tokenizer) {
  return {[&](std::string_view text, std::size_t from) { return tokenizer.division(text, from); },
          [&](std::string_view part) { return tokenizer.encode(part); }};
}

void encode_in_parts(std::string_view text, const TextEncoder& encoder, std::size_t threads,
                     const TakeIds& take) {
  if (threads == 0) threads = static_cast<std::size_t>(usable_processors());
  threads = std::min(threads, text.size() / kPartBytes + 1);
  Parts parts(text, encoder, 2 * threads);
  std::vector<std::jthread> workers;
  for (std::size_t i = 0; i < threads; ++i) workers.emplace_back([&] { parts.work(); });
  try {
    parts.take_all(take);
  } catch (...) {
    parts.stop();
    throw;
  }
}

}  // namespace zoo
