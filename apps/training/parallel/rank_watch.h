#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <c10/util/intrusive_ptr.h>

namespace c10d {
class Store;
}

namespace zoo {

/// What a process prints when ranks end before their time, and its exit status.
struct RankEnd {
  std::string message;
  int status = EXIT_FAILURE;
};

/// Ends this process when another rank has died, which the operations of c10d would wait for. A thread
/// of each rank writes signs of life into the store. Rank 0 watches the others; rank 1 watches rank 0.
/// Whoever knows of an end first writes it into the store, where all find it within half a second: every rank
/// ends with the same line.
class RankWatch {
 public:
  struct Options {
    std::int64_t rank = 0;
    std::vector<std::string> hosts;  // of all ranks
    std::int64_t timeout = 60;       // seconds without a sign of life
    bool store_in_rank_0 = true;     // else the launcher has it
  };
  /// `store`: a client of its own, because an operation of another thread may wait in it.
  RankWatch(c10::intrusive_ptr<c10d::Store> store, Options options);
  /// Tells the other ranks that this one has finished. The rank with the store waits for them.
  ~RankWatch();

  /// The other ranks end, and print the message; this one may print its own.
  void end_others(const RankEnd& end);
  /// All ranks end, and print the message.
  [[noreturn]] void end_all(const RankEnd& all);
  /// Call when an operation with another rank has failed: this process ends with the name of the rank that
  /// has died. Returns after the timeout if all live.
  void find_lost();

  /// Waits until all ranks have called it: none ends while rank 0 still writes.
  void wait_for_all();

  std::string rank_and_host(std::int64_t rank) const {
    return "rank " + std::to_string(rank) + " on " + options_.hosts[static_cast<std::size_t>(rank)];
  }

 private:
  struct Seen {
    std::string beat;
    std::int64_t stale = 0;  // rounds since it changed
  };

  void beat();
  void judge(std::vector<Seen>& seen);
  void guard();
  bool pause();
  void stop();
  void wait_for_others(const char* counter, std::int64_t rounds);
  [[noreturn]] void end(const RankEnd& end);

  c10::intrusive_ptr<c10d::Store> store_;
  Options options_;
  std::int64_t limit_;                       // in rounds
  std::atomic<std::int64_t> unanswered_{0};  // rounds since the store's last answer
  bool ends_ = false;
  std::mutex mutex_;
  std::condition_variable wakes_;
  std::thread beats_, guards_;
};

/// Prefix of the store's keys; a launcher that starts a training again may keep its store.
inline std::string store_prefix(const std::string& attempt) { return "tzoo" + attempt; }

/// Tells all ranks to end so, unless they have been told.
void set_end(c10d::Store& store, const RankEnd& end);

}  // namespace zoo
