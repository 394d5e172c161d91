#include "data/corpora/kjv_groups.h"

#include <algorithm>

namespace zoo {
namespace {

constexpr int kHeldOutEvery = 10;

struct Group {
  std::string_view first_chapter, name;
};

constexpr Group kGroups[] = {{"Genesis 1", "law"},     {"Joshua 1", "history"},       {"Job 1", "poetry"},
                             {"Isaiah 1", "prophets"}, {"Matthew 1", "gospels"},      {"Acts 1", "acts"},
                             {"Romans 1", "letters"},  {"Revelation 1", "revelation"}};

}  // namespace

std::string label_kjv(std::string_view text, ChapterSet set) {
  std::string table = "text\tlabel\n";
  std::string_view group;
  int chapter = 0;
  bool heading_next = true, after_heading = false;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) {
      // One behind the heading, one behind the last verse.
      heading_next = !after_heading;
      after_heading = false;
    } else if (heading_next) {
      for (const Group& candidate : kGroups) {
        if (line == candidate.first_chapter) group = candidate.name;
      }
      ++chapter;
      heading_next = false;
      after_heading = true;
    } else if ((chapter % kHeldOutEvery == 0) == (set == ChapterSet::kHeldOut)) {
      table.append(line).append("\t").append(group).append("\n");
    }
  }
  return table;
}

}  // namespace zoo
