#include "data/corpora/kjv.h"

#include "data/base/error.h"
#include "data/base/lines.h"
#include "data/corpora/child_process.h"

namespace zoo {
namespace {

constexpr const char* kInstall = "install it with: apt-get install bible-kjv";

constexpr int kHeldOutEvery = 10;

// Of books, by the first chapter.
constexpr std::pair<std::string_view, std::string_view> kGroups[] = {
    {"Genesis 1", "law"},     {"Joshua 1", "history"},       {"Job 1", "poetry"},
    {"Isaiah 1", "prophets"}, {"Matthew 1", "gospels"},      {"Acts 1", "acts"},
    {"Romans 1", "letters"},  {"Revelation 1", "revelation"}};

// A line of the words alone: the source has three stray blanks.
std::string line_of_words(std::string_view text) {
  return joined(split_words(std::string(text)), " ") + "\n";
}

}  // namespace

std::string lay_out_kjv(std::string_view printed) {
  std::string text;
  for (const auto& [number, line, file] : lines_of(printed)) {
    if (line.empty()) continue;
    if (line[0] != ' ') {
      if (!text.empty()) text += '\n';
      text += line_of_words(line) + "\n";
    } else {
      const std::size_t words = line.find_first_not_of(" 0123456789");
      if (words != std::string_view::npos) text += line_of_words(line.substr(words));
    }
  }
  return text;
}

std::string extract_kjv() {
  // -l: longer than every verse, so that COLUMNS has no effect; -p: ignores data in the folder.
  const auto result = run_program({"bible", "-p", "/usr/lib/", "-l", "1000000", "gen1:1-rev22:21"});
  if (!result) throw Error("the corpus kjv needs the program 'bible', which is not installed; ", kInstall);
  if (result->exit_code != 0)
    throw Error("the corpus kjv: the program 'bible' failed: ", result->reason(), "; ", kInstall);
  return lay_out_kjv(result->output);
}

std::string label_kjv(std::string_view text, ChapterSet set) {
  std::string table = "text\tlabel\n";
  std::string_view group;
  int chapter = 0;
  bool heading_next = true, after_heading = false;
  for (const auto& [number, line, file] : lines_of(text)) {
    if (line.empty()) {
      // Empty lines follow a heading and the last verse of a chapter.
      heading_next = !after_heading;
      after_heading = false;
    } else if (heading_next) {
      for (const auto& [first_chapter, name] : kGroups)
        if (line == first_chapter) group = name;
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
