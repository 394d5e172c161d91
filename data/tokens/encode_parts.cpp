#include "data/tokens/encode_parts.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

#include "data/base/error.h"
#include "data/base/processors.h"

namespace zoo {
namespace {

constexpr std::size_t kPartBytes = std::size_t{1} << 20;

// The tokenizer's message counts from the beginning of its part.
TokenIds ids_of(std::future<TokenIds> part, std::size_t begin) {
  try {
    return part.get();
  } catch (const Error& fault) {
    if (begin == 0) throw;
    throw Error("after byte ", begin, ": ", fault.what());
  }
}

}  // namespace

TextEncoder TextEncoder::of(const Tokenizer& tokenizer) {
  return {[&](std::string_view text, std::size_t from) { return tokenizer.division(text, from); },
          [&](std::string_view part) { return tokenizer.encode(part); }};
}

void encode_in_parts(std::string_view text, const TextEncoder& encoder, std::size_t threads,
                     const TakeIds& take) {
  if (threads == 0) threads = static_cast<std::size_t>(usable_processors());
  threads = std::min(threads, text.size() / kPartBytes + 1);
  std::vector<std::size_t> ends{0};
  while (ends.back() < text.size())
    ends.push_back(encoder.division(text, std::min(ends.back() + kPartBytes, text.size())));
  std::vector<std::promise<TokenIds>> parts(ends.size() - 1);
  std::mutex mutex;
  std::condition_variable changed;
  std::size_t next = 0, most = 2 * threads;  // parts that are begun, and that may be
  const auto allow = [&](std::size_t begun, std::size_t more) {
    const std::lock_guard lock(mutex);
    next = std::max(next, begun);
    most += more;
    changed.notify_all();
  };
  const auto work = [&] {
    for (;;) {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return next == parts.size() || next < most; });
      if (next == parts.size()) return;
      const std::size_t part = next++;
      lock.unlock();
      try {
        parts[part].set_value(encoder.encode(text.substr(ends[part], ends[part + 1] - ends[part])));
      } catch (...) {
        parts[part].set_exception(std::current_exception());
      }
    }
  };
  std::vector<std::jthread> workers;
  for (std::size_t i = 0; i < threads; ++i) workers.emplace_back(work);
  try {
    for (std::size_t part = 0; part < parts.size(); ++part) {
      const TokenIds ids = ids_of(parts[part].get_future(), ends[part]);
      allow(0, 1);
      take(ids, ends[part + 1]);
    }
  } catch (...) {
    allow(parts.size(), 0);
    throw;
  }
}

}  // namespace zoo
