#include "apps/training/parallel/rank_watch.h"

#include <algorithm>
#include <chrono>
#include <iostream>

#include <torch/csrc/distributed/c10d/Store.hpp>

namespace zoo {
namespace {

constexpr std::chrono::milliseconds kRound(500);
constexpr std::int64_t kRoundsPerSecond = 2;
// After a connection has broken, a rank is dead that has been silent for so many rounds.
constexpr std::int64_t kSilent = 6;
constexpr std::int64_t kFarewell = 4;  // rounds that the last messages of an end may take
constexpr const char *kTrouble = "trouble", *kEnded = "ended", *kFinished = "finished";
constexpr const char* kEnd = "end";  // the store's key of what set_end() tells

std::string beat_key(std::int64_t rank) { return "beat/" + std::to_string(rank); }

// What set_end() has told: the status and the message.
RankEnd end_of(c10d::Store& store) {
  const std::string text = store.get_to_str(kEnd);
  const std::size_t space = text.find(' ');
  return {text.substr(space + 1), std::atoi(text.substr(0, space).c_str())};
}

}  // namespace

void set_end(c10d::Store& store, const RankEnd& end) {
  store.compareSet(kEnd, std::string(), std::to_string(end.status) + ' ' + end.message);
}

RankWatch::RankWatch(c10::intrusive_ptr<c10d::Store> store, Options options)
    : store_(std::move(store)),
      options_(std::move(options)),
      limit_(std::max<std::int64_t>(options_.timeout * kRoundsPerSecond, 2)) {
  beats_ = std::thread([this] { beat(); });
  guards_ = std::thread([this] { guard(); });
}

RankWatch::~RankWatch() {
  if (!beats_.joinable()) return;  // all have ended
  stop();
  try {
    store_->set(beat_key(options_.rank), kFinished);
    if (options_.rank != 0) store_->add(kFinished, 1);
    wait_for_others(kFinished, limit_);
  } catch (const std::exception&) {  // the store has gone: the others have finished, too
  }
}

// Waits for a round; true if the watch ends.
bool RankWatch::pause() {
  std::unique_lock<std::mutex> lock(mutex_);
  return wakes_.wait_for(lock, kRound, [this] { return ends_; });
}

void RankWatch::stop() {
  if (!beats_.joinable()) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ends_ = true;
  }
  wakes_.notify_all();
  beats_.join();
  guards_.join();
}

void RankWatch::beat() {
  const bool judges = options_.rank == 0 || (options_.rank == 1 && !options_.store_in_rank_0);
  std::vector<Seen> seen(options_.hosts.size());
  try {
    for (std::int64_t round = 0;; ++round) {
      store_->set(beat_key(options_.rank), std::to_string(round));
      if (store_->check({kEnd})) end(end_of(*store_));
      if (judges) judge(seen);
      unanswered_ = 0;
      if (pause()) return;
    }
  } catch (const std::exception&) {
    end({options_.store_in_rank_0 ? rank_and_host(0) + " has died" : "the launcher has ended"});
  }
}

// Rounds are counted, not seconds: a machine that slept has missed none.
void RankWatch::judge(std::vector<Seen>& seen) {
  const std::int64_t limit = store_->check({kTrouble}) ? std::min(kSilent, limit_) : limit_;
  const std::size_t first = options_.rank == 0 ? 1 : 0, last = options_.rank == 0 ? seen.size() : 1;
  std::vector<std::string> keys;
  for (std::size_t rank = first; rank < last; ++rank)
    keys.push_back(beat_key(static_cast<std::int64_t>(rank)));
  const auto beats = store_->multiGet(keys);
  for (std::size_t i = 0; i < beats.size(); ++i) {
    const std::string beat(beats[i].begin(), beats[i].end());
    Seen& rank = seen[first + i];
    rank.stale = beat == rank.beat && beat != kFinished ? rank.stale + 1 : 0;
    rank.beat = beat;
    if (rank.stale < limit) continue;
    set_end(*store_,
            {rank_and_host(static_cast<std::int64_t>(first + i)) + " has died: no sign of life for " +
             std::to_string(std::max<std::int64_t>(limit / kRoundsPerSecond, 1)) + " s"});
  }
}

// The other thread waits for ever if a cable is cut.
void RankWatch::guard() {
  while (!pause())
    if (++unanswered_ > limit_)
      end({(options_.store_in_rank_0 ? rank_and_host(0) : "the launcher") + " has not answered for " +
           std::to_string(options_.timeout) + " s"});
}

void RankWatch::wait_for_all() {
  constexpr const char* kDone = "done";
  const auto all = std::ssize(options_.hosts);
  try {
    for (auto count = store_->add(kDone, 1); count < all; count = store_->add(kDone, 0))
      std::this_thread::sleep_for(kRound / 10);
  } catch (const std::exception&) {  // the store has gone, which ends this process
    std::this_thread::sleep_for(2 * kRound);
  }
}

void RankWatch::wait_for_others(const char* counter, std::int64_t rounds) {
  constexpr std::int64_t kParts = 5;  // of a round
  if (options_.rank != 0 || !options_.store_in_rank_0) return;
  const auto others = std::ssize(options_.hosts) - 1;
  for (std::int64_t i = 0; i < rounds * kParts && store_->add(counter, 0) < others; ++i)
    std::this_thread::sleep_for(kRound / kParts);
}

void RankWatch::end(const RankEnd& end) {
  static std::atomic<bool> ends{false};  // by the first of the two threads
  while (ends.exchange(true)) std::this_thread::sleep_for(kRound);
  std::cerr << "error: " + end.message + "\n" << std::flush;
  try {
    if (options_.rank != 0 && unanswered_ <= limit_) store_->add(kEnded, 1);
    wait_for_others(kEnded, kFarewell);
  } catch (const std::exception&) {  // the store has gone
  }
  std::_Exit(end.status);
}

void RankWatch::end_others(const RankEnd& end) {
  stop();
  try {
    set_end(*store_, end);
    wait_for_others(kEnded, kFarewell);
  } catch (const std::exception&) {  // they notice that the store has gone
  }
}

void RankWatch::end_all(const RankEnd& all) {
  stop();
  try {
    set_end(*store_, all);
    end(end_of(*store_));
  } catch (const std::exception&) {
    end(all);
  }
}

void RankWatch::find_lost() {
  try {
    store_->set(kTrouble, "");
  } catch (const std::exception&) {  // the other thread notices that the store has gone
  }
  std::this_thread::sleep_for(std::chrono::seconds(options_.timeout));
}

}  // namespace zoo
