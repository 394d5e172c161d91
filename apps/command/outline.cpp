#include "apps/command/outline.h"

namespace zoo {

std::vector<const CommandOutline*> commands_below(const CommandOutline& root) {
  std::vector<const CommandOutline*> commands;
  for (const CommandOutline& action : root.actions) {
    commands.push_back(&action);
    const auto below = commands_below(action);
    commands.insert(commands.end(), below.begin(), below.end());
  }
  return commands;
}

std::vector<const CommandOutline*> runnable_commands(const CommandOutline& root) {
  if (root.actions.empty()) return {&root};
  std::vector<const CommandOutline*> commands = commands_below(root);
  std::erase_if(commands, [](const CommandOutline* command) { return !command->actions.empty(); });
  return commands;
}

}  // namespace zoo
