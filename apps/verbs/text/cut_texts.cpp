#include "apps/verbs/text/cut_texts.h"

#include <algorithm>
#include <iostream>

namespace zoo {

RunPass CutTexts::run() {
  return [this](const TextPass& pass, const std::vector<Encoding>& texts) {
    for (const Encoding& text : texts) {
      ++all_;
      if (!text.cut) continue;
      ++cut_;
      limit_ = std::max(limit_, text.size());
    }
    return run_at_once(pass, texts);
  };
}

void CutTexts::note() const {
  if (cut_ == 0) return;
  std::cerr << "note: " << cut_ << (all_ == 1 ? " text is" : " of " + std::to_string(all_) + " texts are")
            << " longer than the " << limit_ << " tokens that are read, and cut\n";
}

}  // namespace zoo
