#include "models/checkpoint/load_report.h"

#include "data/base/lines.h"

namespace zoo {
namespace {

void add(std::string& text, const char* what, const std::vector<std::string>& names) {
  if (names.empty()) return;
  if (!text.empty()) text += "; ";
  text += std::string(what) + " " + std::to_string(names.size()) + ": " + joined(names);
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
