#include "apps/command/read_with.h"

#include <algorithm>

#include "apps/command/arguments.h"
#include "data/base/lines.h"

namespace zoo {

void require_read(const std::function<bool(const std::string&)>& is_given, const std::string& other,
                  const std::string& value, const std::vector<ReadWith>& all) {
  for (const auto& [flags, values] : all) {
    if (std::ranges::find(values, value) != values.end()) continue;
    for (const std::string& flag : flags)
      if (is_given(flag))
        throw UsageError("--", flag, ": only for the ", other, " ", joined(values, " or "), ", not ", value);
  }
}

}  // namespace zoo
