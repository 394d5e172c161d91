#include "apps/command/flag_help.h"

#include <algorithm>
#include <sstream>
#include <vector>

#include <nlohmann/json.hpp>

#include "apps/command/display_width.h"

namespace zoo {
namespace {

constexpr int kWidestLeft = 32;

std::string joined_choices(const FlagData& flag) {
  std::string text;
  for (const std::string& value : flag.choices) text += (text.empty() ? "" : "|") + value;
  return text;
}

std::string placeholder(const FlagData& flag) {
  if (!flag.placeholder.empty()) return flag.placeholder;
  if (!flag.choices.empty()) return joined_choices(flag);
  switch (flag.kind) {
    case FlagKind::integer:
      return "N";
    case FlagKind::number:
      return "X";
    case FlagKind::path:
      return "PATH";
    default:
      return "TEXT";
  }
}

std::string upper(std::string name) {
  for (char& letter : name)
    letter = static_cast<char>(letter >= 'a' && letter <= 'z' ? letter - 'a' + 'A' : letter);
  return name;
}

std::string left_side(const FlagData& flag) {
  if (flag.positional) return upper(flag.name);
  if (flag.about_parsing && flag.kind == FlagKind::boolean) return "--" + flag.name;
  if (flag.kind == FlagKind::boolean) return "--[no_]" + flag.name;
  return "--" + flag.name + " " + placeholder(flag);
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

std::string usage_line(const VerbText& verb, const std::deque<FlagData>& flags) {
  std::string line = "usage: " + verb.command;
  for (const FlagData& flag : flags) {
    if (!flag.positional) continue;
    const std::string name = upper(flag.name) + (flag.kind == FlagKind::list ? "..." : "");
    line += flag.required ? " " + name : " [" + name + "]";
  }
  return line + " [flags]";
}

// Groups in the order of their first flag, the general group last.
std::vector<std::string> groups_of(const std::deque<FlagData>& flags) {
  std::vector<std::string> groups;
  for (const FlagData& flag : flags) {
    const bool known = std::find(groups.begin(), groups.end(), flag.group) != groups.end();
    if (!known && flag.group != kGeneralGroup) groups.push_back(flag.group);
  }
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
          .usage = left_side(flag),
          .description = right_side(flag),
          .positional = flag.positional,
          .boolean = boolean,
          .repeatable = flag.kind == FlagKind::list,
          .of_every_verb = flag.about_parsing,
          .value_name = boolean ? "" : placeholder(flag),
          .values = flag.choices.empty() ? flag.suggestions : flag.choices,
          .paths = boolean ? FlagOutline::Paths::none : paths_of(flag)};
}

void print_entry(std::ostream& out, const std::string& left, const std::string& right, int column) {
  out << "  " << left;
  const int used = 2 + display_width(left);
  if (used + 2 > column) {
    out << "\n" << std::string(static_cast<std::size_t>(column), ' ');
  } else {
    out << std::string(static_cast<std::size_t>(column - used), ' ');
  }
  out << wrap(right, column, column) << "\n";
}

}  // namespace

std::string wrap(const std::string& text, int column, int indent) {
  std::istringstream words(text);
  std::string word, wrapped;
  int at = column;
  while (words >> word) {
    const int width = display_width(word);
    if (!wrapped.empty() && at + 1 + width > kHelpWidth) {
      wrapped += "\n" + std::string(static_cast<std::size_t>(indent), ' ');
      at = indent;
    } else if (!wrapped.empty()) {
      wrapped += " ";
      ++at;
    }
    wrapped += word;
    at += width;
  }
  return wrapped;
}

void print_help(std::ostream& out, const VerbText& verb, const std::deque<FlagData>& flags) {
  out << usage_line(verb, flags) << "\n\n" << wrap(verb.summary, 0, 0) << "\n";
  int column = 0;
  for (const FlagData& flag : flags)
    column = std::max(column, std::min(kWidestLeft, display_width(left_side(flag))) + 4);
  for (const std::string& group : groups_of(flags)) {
    out << "\n" << group << "\n";
    for (const FlagData& flag : flags) {
      if (flag.group == group) print_entry(out, left_side(flag), right_side(flag), column);
    }
  }
  print_entry(out, "--help, -h", "show this help", column);
  if (!verb.examples.empty()) out << (verb.examples.size() > 1 ? "\nExamples\n" : "\nExample\n");
  for (const std::string& example : verb.examples) out << "  " << example << "\n";
}

void outline_help(const VerbText& verb, const std::deque<FlagData>& flags, CommandOutline& outline) {
  outline.command = verb.command;
  outline.description = verb.summary;
  outline.examples = verb.examples;
  for (const std::string& group : groups_of(flags)) {
    for (const FlagData& flag : flags) {
      if (flag.group == group) outline.flags.push_back(outline_of(flag));
    }
  }
}

}  // namespace zoo
