#pragma once

/// @file
/// Use:
///
///     const zoo::ChatTemplate chat("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}",
///                                  "mine");
///     nlohmann::ordered_json variables;
///     variables["messages"].push_back({{"role", "user"}, {"content", "Hello"}});
///     const std::string prompt = chat.render(variables);

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "tokenizer/text/utf8.h"

namespace zoo {

/// A rendered conversation.
struct RenderedChat {
  std::string text;
  bool marks_answers = false;      // the template has {% generation %}
  std::vector<ByteRange> answers;  // bytes of `text` between {% generation %} and {% endgeneration %}
};

/// A chat template: the subset of Jinja that chat templates use, rendered as in transformers (jinja2 with
/// trim_blocks, lstrip_blocks, break, continue and the tag `generation`). Safe to share between threads.
class ChatTemplate {
 public:
  /// Throws Error "NAME, line N: …" for a tag, filter, test, method or function outside of the subset, and
  /// for a template that is nested too deeply.
  ChatTemplate(std::string_view source, std::string name);
  ~ChatTemplate();
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;

  /// The prompt for the variables, such as messages, tools and bos_token. Throws Error with the line if the
  /// template refuses them, uses an undefined value, or takes too many steps or too much memory.
  std::string render(const nlohmann::ordered_json& variables) const;
  RenderedChat rendered(const nlohmann::ordered_json& variables) const;

 private:
  struct Parsed;

  std::string name_;
  std::unique_ptr<const Parsed> parsed_;
};

}  // namespace zoo
