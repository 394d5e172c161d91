#pragma once

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "apps/command/flag_data.h"

namespace zoo {

/// What the words of a command line say, not yet converted.
struct ParsedWords {
  /// Per flag named, in the order of first mention: every text given for it.
  std::vector<std::pair<FlagData*, std::vector<std::string>>> values;
  bool help = false;
};

/// Sorts words into flags and positional arguments. Throws UsageError for an unknown flag (naming the
/// nearest), a flag without its value, and an argument that no positional takes; not where --help is among
/// the words.
ParsedWords parse_words(std::deque<FlagData>& flags, const std::vector<std::string>& words,
                        const std::string& command);

}  // namespace zoo
