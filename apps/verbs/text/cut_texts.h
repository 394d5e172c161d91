#pragma once

#include <cstdint>

#include "models/tasks/text_pass.h"

namespace zoo {

/// Counts the texts of which a model reads a part, because they are longer than its limit.
class CutTexts {
 public:
  /// run_at_once(), which also counts; refers to this object.
  RunPass run();

  /// Says on standard error how many there were, if any.
  void note() const;

 private:
  std::int64_t cut_ = 0, all_ = 0;
  std::size_t limit_ = 0;
};

}  // namespace zoo
