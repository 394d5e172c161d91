#pragma once

#include <functional>
#include <string>
#include <vector>

namespace zoo {

/// Flags that are read only with some values of another one.
struct ReadWith {
  std::vector<std::string> flags, values;
};

/// Throws UsageError naming the first flag that `is_given` although the `value` of the other one leaves it
/// unread.
void require_read(const std::function<bool(const std::string&)>& is_given, const std::string& other,
                  const std::string& value, const std::vector<ReadWith>& all);

}  // namespace zoo
