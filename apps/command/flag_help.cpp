#include <algorithm>

#include <nlohmann/json.hpp>

#include "apps/command/flag_data.h"
#include "apps/command/terminal.h"
#include "data/base/lines.h"

namespace zoo {
namespace {

// On a narrow terminal, descriptions are below their flags.
constexpr int kWideHelp = 80, kWidestLeft = 32, kNarrowLeft = 6;

std::string placeholder(const FlagData& flag) {
  if (!flag.placeholder.empty()) return flag.placeholder;
  if (!flag.choices.empty()) return joined(flag.choices, "|");
  switch (flag.kind) {
    case FlagKind::integer: return "N";
    case FlagKind::number: return "X";
    case FlagKind::path: return "PATH";
    default: return "TEXT";
  }
}

std::string upper(std::string name) {
  for (char& letter : name)
    letter = static_cast<char>(letter >= 'a' && letter <= 'z' ? letter - 'a' + 'A' : letter);
  return name;
}

std::string usage_of(const FlagData& flag) {
  if (flag.positional) return upper(flag.name);
  if (flag.negatable()) return "--[no_]" + flag.name;
  if (flag.kind == FlagKind::boolean) return "--" + flag.name;
  return "--" + flag.name + " " + placeholder(flag);
}

// A flag that may be omitted before its value is in brackets.
std::string left_side(const FlagData& flag) {
  return flag.leads ? "[--" + flag.name + "] " + placeholder(flag) : usage_of(flag);
}

std::string default_text(const FlagData& flag) {
  if (flag.about_parsing) return "";
  if (flag.required) return " (required)";
  const nlohmann::json value = flag.value();
  if (value.is_null() || (value.is_string() && value.get_ref<const std::string&>().empty()) ||
      value.is_array())
    return "";
  return " (default: " + (value.is_string() ? value.get<std::string>() : value.dump()) + ")";
}

std::string right_side(const FlagData& flag) {
  return flag.help + (flag.kind == FlagKind::list && !flag.positional ? "; may be given several times" : "") +
         default_text(flag);
}

std::string usage_line(const CommandOutline& verb, const std::deque<FlagData>& flags) {
  std::string line = "usage: " + verb.command;
  for (const FlagData& flag : flags) {
    if (flag.leads) line += flag.required ? " " + left_side(flag) : " [" + placeholder(flag) + "]";
    if (!flag.positional) continue;
    const std::string name = upper(flag.name) + (flag.kind == FlagKind::list ? "..." : "");
    line += flag.required ? " " + name : " [" + name + "]";
  }
  return line + " [flags]";
}

// Groups in the order of their first flag, the general group last.
std::vector<std::string> groups_of(const std::deque<FlagData>& flags) {
  std::vector<std::string> groups;
  for (const FlagData& flag : flags)
    if (flag.group != kGeneralGroup && std::ranges::count(groups, flag.group) == 0)
      groups.push_back(flag.group);
  groups.push_back(kGeneralGroup);
  return groups;
}

FlagOutline::Paths paths_of(const FlagData& flag) {
  const auto mentions = [name = placeholder(flag)](const char* word) {
    return name.find(word) != std::string::npos;
  };
  if (mentions("FILE") || mentions("PATH")) return FlagOutline::Paths::files;
  return mentions("DIR") ? FlagOutline::Paths::directories : FlagOutline::Paths::none;
}

FlagOutline outline_of(const FlagData& flag) {
  const bool boolean = flag.kind == FlagKind::boolean;
  return {.name = flag.name,
          .usage = usage_of(flag),
          .description = right_side(flag),
          .positional = flag.positional,
          .boolean = boolean,
          .repeatable = flag.kind == FlagKind::list,
          .negatable = flag.negatable(),
          .of_every_verb = flag.about_parsing,
          .value_name = boolean ? "" : placeholder(flag),
          .values = flag.choices.empty() ? flag.suggestions : flag.choices,
          .paths = boolean ? FlagOutline::Paths::none : paths_of(flag)};
}

// "--task lm|mlm|…" in lines, broken after a bar.
std::vector<std::string> lines_of_choices(std::string left, int columns) {
  std::vector<std::string> lines;
  while (display_width(left) > columns) {
    const std::size_t bar = left.find_last_of("| ", fit(left, columns).size() - 1);
    if (bar == std::string::npos || bar == 0) break;
    lines.push_back(left.substr(0, bar + 1));
    left.erase(0, bar + 1);
  }
  lines.push_back(left);
  return lines;
}

// `column`: where descriptions begin.
void print_entry(std::ostream& out, const std::string& left, const std::string& right, int width,
                 int column) {
  const std::string indent(static_cast<std::size_t>(column), ' ');
  int used = 0;
  for (const std::string& line : lines_of_choices(left, width - 4)) {
    const std::string begin(used > 0 ? 4 : 2, ' ');
    out << (used > 0 ? "\n" : "") << begin << line;
    used = static_cast<int>(begin.size()) + display_width(line);
  }
  out << (used + 2 > column ? "\n" + indent : indent.substr(static_cast<std::size_t>(used)))
      << wrap(right, width, column) << "\n";
}

// A command with continued lines.
std::string broken_command(const std::string& command, int columns) {
  if (standard_output_width() == 0 || display_width(command) <= columns) return command;
  std::string broken;
  for (const std::string& line : wrapped_lines(command, columns - 6))
    broken += (broken.empty() ? "" : " \\\n      ") + line;
  return broken;
}

}  // namespace

void print_help(std::ostream& out, const CommandOutline& verb, const std::deque<FlagData>& flags) {
  const int width = paragraph_width(), widest = width < kWideHelp ? kNarrowLeft : kWidestLeft;
  out << wrap(usage_line(verb, flags), width, 4) << "\n\n" << wrap(verb.description, width) << "\n";
  int column = 0;
  for (const FlagData& flag : flags)
    column = std::max(column, std::min(widest, display_width(left_side(flag))) + 4);
  for (const std::string& group : groups_of(flags)) {
    out << "\n" << group << "\n";
    for (const FlagData& flag : flags)
      if (flag.group == group) print_entry(out, left_side(flag), right_side(flag), width, column);
  }
  print_entry(out, "--help, -h", "show this help", width, column);
  if (!verb.examples.empty()) out << (verb.examples.size() > 1 ? "\nExamples\n" : "\nExample\n");
  for (const std::string& example : verb.examples) out << "  " << broken_command(example, width - 2) << "\n";
}

void outline_help(const CommandOutline& verb, const std::deque<FlagData>& flags, CommandOutline& outline) {
  outline.command = verb.command;
  outline.description = verb.description;
  outline.examples = verb.examples;
  for (const std::string& group : groups_of(flags)) {
    for (const FlagData& flag : flags) {
      if (flag.group != group) continue;
      outline.flags.push_back(outline_of(flag));
      if (!flag.leads) continue;
      FlagOutline bare = outline.flags.back();
      bare.positional = true;
      bare.usage = bare.value_name;
      outline.flags.push_back(bare);
    }
  }
}

}  // namespace zoo
