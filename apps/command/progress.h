#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "apps/command/terminal.h"

namespace zoo {

/// Progress bar on a terminal, for example
///   [=======>      ] 45%  900/2000 iterations  loss 1.2345  lr 1.0e-03  0:32 left
/// drawn at most ten times a second; draws nothing into a pipe, for which the caller prints lines.
class Progress {
 public:
  /// `total` 0 means unknown: shows only the count.
  Progress(std::int64_t total, std::string unit, Terminal terminal = standard_error());
  /// Clears the bar, also on an error.
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// The first call marks the start of the work, from which the remaining time is estimated.
  void update(std::int64_t done, std::string_view status = "");

  /// Shows the status of work that is not counted, such as an evaluation; the estimate excludes its time.
  void aside(std::string_view status);

  /// Prints a line to the same stream, on a terminal above the bar.
  void print(std::string_view line);

  /// Clears the bar; update() draws it again.
  void clear();

  bool on_terminal() const { return terminal_.interactive; }

 private:
  void draw(double now);
  std::string time_left(double now) const;

  const std::int64_t total_;
  const std::string unit_;
  const Terminal terminal_;
  std::int64_t first_ = -1, done_ = 0;
  double started_ = 0, drawn_ = 0, seen_ = 0;  // seen_: time of the last update
  std::string status_;
  bool visible_ = false;
};

/// A bar for work that says its total as it goes on; the last copy clears it.
std::function<void(std::int64_t done, std::int64_t total)> progress_bar(const std::string& unit);

}  // namespace zoo
