#include "models/tasks/row_text.h"

#include <utility>

namespace zoo {

std::string RowText::push(TokenId id) {
  if (stopped_ || !ids_.contains(id)) return {};
  return release(decoder_.push(id));
}

std::string RowText::release(std::string text) {
  held_ += text;
  const auto stop = stop_.find(held_);
  stopped_ = stop.has_value();
  const std::size_t certain = stop ? *stop : held_.size() - stop_.undecided(held_);
  std::string released = held_.substr(0, certain);
  held_.erase(0, certain);
  return released;
}

std::string RowText::finish() {
  if (stopped_) return {};
  std::string text = release(decoder_.finish());
  if (!stopped_) text += std::exchange(held_, {});
  return text;
}

}  // namespace zoo
