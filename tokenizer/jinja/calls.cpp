#include "tokenizer/jinja/calls.h"

#include <algorithm>

namespace zoo::chat {

std::vector<const Value*> Arguments::bind(std::initializer_list<const char*> parameters,
                                          std::size_t required) const {
  if (positional.size() > parameters.size())
    throw Fault("takes at most " + std::to_string(parameters.size()) + " arguments");
  std::vector<const Value*> bound(parameters.size());
  for (std::size_t i = 0; i < positional.size(); ++i) bound[i] = &positional[i];
  for (const auto& [name, value] : named) {
    const auto found = std::find(parameters.begin(), parameters.end(), name);
    if (found == parameters.end()) throw Fault("has no argument '" + name + "'");
    const Value*& slot = bound[static_cast<std::size_t>(found - parameters.begin())];
    if (slot != nullptr) throw Fault("has two values for '" + name + "'");
    slot = &value;
  }
  for (std::size_t i = 0; i < required; ++i)
    if (bound[i] == nullptr) throw Fault("lacks the argument '" + std::string(parameters.begin()[i]) + "'");
  return bound;
}

}  // namespace zoo::chat
