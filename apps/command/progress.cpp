#include "apps/command/progress.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <vector>

#include "apps/command/output.h"
#include "apps/command/visible_text.h"

namespace zoo {
namespace {

constexpr double kSecondsBetweenDraws = 0.1;
constexpr int kWidestBar = 30, kNarrowestBar = 8;

// Splits "loss 4.0 lr 1e-3" into parts, each with its leading blanks.
std::vector<std::string> parts_of(std::string_view status) {
  std::vector<std::string> parts;
  while (!status.empty()) {
    const std::string_view part = status.substr(0, status.find("  "));
    if (!part.empty()) parts.push_back("  " + std::string(part));
    status.remove_prefix(std::min(status.size(), part.size() + 2));
  }
  return parts;
}

// Draws "[====>    ] ", `columns` wide.
std::string bar(double fraction, int columns, bool colour) {
  const int inside = columns - 3;
  const int filled = static_cast<int>(std::lround(fraction * inside));
  std::string done(static_cast<std::size_t>(filled), '=');
  if (filled > 0 && filled < inside) done.back() = '>';
  if (colour) done = "\x1b[32m" + done + "\x1b[0m";
  return "[" + done + std::string(static_cast<std::size_t>(inside - filled), ' ') + "] ";
}

}  // namespace

Progress::Progress(std::int64_t total, std::string unit, Terminal terminal)
    : total_(std::max<std::int64_t>(0, total)), unit_(std::move(unit)), terminal_(std::move(terminal)) {}

void Progress::update(std::int64_t done, std::string_view status) {
  if (!terminal_.interactive) return;
  const double now = terminal_.clock();
  done_ = done;
  status_ = status;
  if (first_ < 0) {
    first_ = done;
    started_ = now;
  }
  seen_ = now;
  if (!visible_ || now - drawn_ >= kSecondsBetweenDraws) draw(now);
}

void Progress::aside(std::string_view status) {
  if (first_ >= 0) started_ += terminal_.clock() - seen_;
  update(done_, status);
}

void Progress::print(std::string_view line) {
  const bool redraw = visible_;
  clear();
  *terminal_.out << visible_lines(line) << "\n" << std::flush;
  if (redraw) draw(terminal_.clock());
}

void Progress::clear() {
  if (!visible_) return;
  *terminal_.out << "\r\x1b[K" << std::flush;
  visible_ = false;
}

std::string Progress::time_left(double now) const {
  const double rate = static_cast<double>(done_ - first_) / (now - started_);
  const double seconds = static_cast<double>(total_ - done_) / rate;
  if (!(seconds >= 0 && seconds < 1e8)) return "";
  return "  " + clock_time(std::llround(std::ceil(seconds))) + " left";
}

void Progress::draw(double now) {
  std::string line = std::to_string(done_);
  double fraction = 0;
  if (total_ > 0) {
    fraction = std::clamp(static_cast<double>(done_) / static_cast<double>(total_), 0.0, 1.0);
    line = std::to_string(static_cast<int>(fraction * 100)) + "%  " + line + "/" + std::to_string(total_);
  }
  const std::string left = total_ > 0 ? time_left(now) : "";
  // Leaves the last column empty: a terminal that wraps there would scroll at each update.
  const int columns = terminal_.width() - 1;
  // In order of priority: share and time left, unit, the status's first part, the bar, its other parts.
  const auto room_beside = [&](const std::string& text) { return columns - display_width(text + left); };
  if (room_beside(line + " " + unit_) >= 0) line += " " + unit_;
  int needed = 0;
  for (const std::string& part : parts_of(status_)) {
    if (room_beside(line + part) < needed) break;
    line += part;
    needed = kNarrowestBar;
  }
  line += left;
  const int room = std::min(kWidestBar, columns - display_width(line));
  const std::string prefix = total_ > 0 && room >= kNarrowestBar ? bar(fraction, room, terminal_.colour) : "";
  *terminal_.out << "\r" << prefix << fit(line, columns) << "\x1b[K" << std::flush;
  drawn_ = now;
  visible_ = true;
}

std::function<void(std::int64_t, std::int64_t)> progress_bar(const std::string& unit) {
  return [unit, bar = std::make_shared<std::optional<Progress>>()](std::int64_t done, std::int64_t total) {
    if (!*bar) bar->emplace(total, unit);
    (*bar)->update(done);
  };
}

}  // namespace zoo
