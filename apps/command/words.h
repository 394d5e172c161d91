#pragma once

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "apps/command/flag_data.h"

namespace zoo {

/// Parsed words of a command line, not yet converted.
struct ParsedWords {
  /// All texts given per flag, in the order of first use.
  std::vector<std::pair<FlagData*, std::vector<std::string>>> values;
  bool help = false;
};

/// Splits words into flags and positional arguments. Throws UsageError for an unknown flag (naming the
/// nearest), a flag without its value, and an extra argument; not if --help is among the words.
ParsedWords parse_words(std::deque<FlagData>& flags, const std::vector<std::string>& words,
                        const std::string& command);

}  // namespace zoo
