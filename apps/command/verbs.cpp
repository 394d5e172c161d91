#include "apps/command/verbs.h"

#include <algorithm>
#include <iostream>

#include "apps/command/terminal.h"
#include "data/base/near_match.h"

namespace zoo {
namespace {

void print_verbs(const Arguments& arguments, std::string_view summary, std::span<const Verb> verbs) {
  const int width = paragraph_width();
  std::cout << "usage: " << arguments.command << " VERB [flags]\n\n" << wrap(summary, width) << "\n";
  std::size_t column = 0;
  for (const Verb& verb : verbs) column = std::max(column, verb.name.size() + 4);
  std::string_view group;
  for (const Verb& verb : verbs) {
    if (verb.group != group) std::cout << "\n" << verb.group << "\n";
    group = verb.group;
    std::cout << "  " << verb.name << std::string(column - verb.name.size() - 2, ' ')
              << wrap(verb.summary, width, static_cast<int>(column)) << "\n";
  }
  std::cout << "\n'" << arguments.command << " VERB --help' shows the flags of a verb.\n";
}

const Verb& find_verb(const std::string& command, const std::string& name, std::span<const Verb> verbs) {
  const auto found = std::ranges::find(verbs, name, &Verb::name);
  if (found != verbs.end()) return *found;
  std::vector<std::string> names;
  for (const Verb& verb : verbs) names.emplace_back(verb.name);
  const std::string near = did_you_mean(name, names);
  throw UsageError(command, ": unknown ", name.starts_with('-') ? "flag" : "verb", " '", name, "'",
                   near.empty() ? "; '" + command + " --help' lists the verbs" : near);
}

}  // namespace

int dispatch(const Arguments& arguments, std::string_view summary, std::span<const Verb> verbs) {
  if (CommandOutline* const outline = arguments.outline) {
    outline->command = arguments.command;
    outline->description = summary;
    for (const Verb& verb : verbs) {
      CommandOutline& action = outline->actions.emplace_back();
      action.name = verb.name;
      action.summary = verb.summary;
      verb.run({arguments.command + " " + action.name, {}, &action});
    }
    return 0;
  }
  std::vector<std::string> words = arguments.words;
  const bool wants_help = !words.empty() && (words[0] == "help" || words[0] == "--help" || words[0] == "-h");
  if (wants_help) words.erase(words.begin());
  if (words.empty()) {
    print_verbs(arguments, summary, verbs);
    return 0;
  }
  if (wants_help) words.emplace_back("--help");
  const Verb& verb = find_verb(arguments.command, words.front(), verbs);
  words.erase(words.begin());
  return verb.run({arguments.command + " " + std::string(verb.name), words});
}

const char* version() { return ZOO_VERSION; }

std::vector<const CommandOutline*> commands_below(const CommandOutline& root) {
  std::vector<const CommandOutline*> commands;
  for (const CommandOutline& action : root.actions) {
    commands.push_back(&action);
    const auto below = commands_below(action);
    commands.insert(commands.end(), below.begin(), below.end());
  }
  return commands;
}

}  // namespace zoo
