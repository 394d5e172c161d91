#include "apps/command/outline.h"

namespace zoo {

std::vector<const CommandOutline*> runnable_commands(const CommandOutline& root) {
  if (root.actions.empty()) return {&root};
  std::vector<const CommandOutline*> commands;
  for (const CommandOutline& action : root.actions) {
    const auto below = runnable_commands(action);
    commands.insert(commands.end(), below.begin(), below.end());
  }
  return commands;
}

}  // namespace zoo
