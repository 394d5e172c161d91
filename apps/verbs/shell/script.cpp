#include "apps/verbs/shell/script.h"

namespace zoo {

std::string single_quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char letter : text) {
    // Close the quotes, add an escaped quote, open them again: works in fish, too.
    if (letter == '\'') {
      quoted += "'\\''";
    } else {
      quoted += letter;
    }
  }
  return quoted + "'";
}

std::string first_clause(std::string_view description) {
  return std::string(description.substr(0, description.find(';')));
}

std::string joined(const std::vector<std::string>& words, std::string_view separator) {
  std::string text;
  for (const std::string& word : words) {
    if (&word != words.data()) text += separator;
    text += word;
  }
  return text;
}

}  // namespace zoo
