#include "models/checkpoint/load_report.h"

#include <algorithm>
#include <span>

#include "data/base/lines.h"

namespace zoo {
namespace {

void add(std::string& text, const char* what, const std::vector<std::string>& names) {
  if (names.empty()) return;
  constexpr std::size_t kMostNames = 8;
  if (!text.empty()) text += "; ";
  text += std::string(what) + " " + std::to_string(names.size()) + ": ";
  text += joined(std::span(names).first(std::min(kMostNames, names.size())));
  if (names.size() > kMostNames) text += ", … ('tzoo inspect DIR' lists all)";
}

}  // namespace

std::string LoadReport::faults() const {
  std::string text;
  add(text, "missing", missing);
  add(text, "unexpected", unexpected);
  add(text, "mismatched", mismatched);
  return text;
}

}  // namespace zoo
