#pragma once

/// @file
/// Use:
///
///     const zoo::ChatTemplate chat("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}",
///                                  "mine");
///     nlohmann::ordered_json variables;
///     variables["messages"].push_back({{"role", "user"}, {"content", "Hello"}});
///     const std::string prompt = chat.render(variables);
///
///     const zoo::ChatFormat format = zoo::ChatFormat::read(directory);
///     nlohmann::ordered_json request;
///     request["messages"].push_back({{"role", "user"}, {"content", "Hello"}});
///     request["add_generation_prompt"] = true;
///     const std::string prompt = format.prompt(request);

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "data/base/gguf_writer.h"
#include "tokenizer/text/utf8.h"

namespace zoo {

/// A rendered conversation.
struct RenderedChat {
  std::string text;
  bool marks_answers = false;      // the template has {% generation %}
  std::vector<ByteRange> answers;  // bytes of `text` between {% generation %} and {% endgeneration %}
};

/// Settings of jinja2. kTransformers: trim_blocks and lstrip_blocks. kHarness, of lm-evaluation-harness:
/// neither, and a value that is not there is an Error (StrictUndefined).
enum class TemplateRules { kTransformers, kHarness };

/// A chat template: the subset of Jinja that chat templates use, rendered as in transformers (with break,
/// continue and the tag `generation`). Safe to share between threads.
class ChatTemplate {
 public:
  /// Throws Error "NAME, line N: …" for a tag, filter, test, method or function outside of the subset, and
  /// for a template that is nested too deeply.
  ChatTemplate(std::string_view source, std::string name, TemplateRules rules = TemplateRules::kTransformers);

  /// The prompt for the variables, such as messages, tools and bos_token. Throws Error with the line if the
  /// template refuses them, uses an undefined value, or takes too many steps or too much memory.
  std::string render(const nlohmann::ordered_json& variables) const;
  RenderedChat rendered(const nlohmann::ordered_json& variables) const;

 private:
  struct Parsed;

  std::string name_;
  std::shared_ptr<const Parsed> parsed_;
};

/// The chat templates of a checkpoint by name ("default", "tool_use") and its special tokens by role
/// ("bos_token"), as transformers passes them to a template.
class ChatFormat {
 public:
  /// Reads a directory or a GGUF file. In a directory, chat_template.jinja and additional_chat_templates/
  /// replace `chat_template` in tokenizer_config.json; without either, a processor's chat_template.json is
  /// used. An adapter's template replaces the model's; special tokens that the adapter lacks are the model's.
  /// Throws Error naming the file and the key.
  static ChatFormat read(const std::filesystem::path& model, const std::filesystem::path& adapter = {});

  bool has_template() const { return !templates_.empty(); }
  /// The templates as entries of a GGUF file, named like the Python package gguf does: in a template's name,
  /// all except ASCII letters and digits becomes '_'.
  GgufMetadata gguf_metadata() const;
  /// The templates as files of a directory: chat_template.jinja, and others in additional_chat_templates/.
  std::map<std::string, std::string> files() const;
  /// Makes the text of a file the only template.
  void use_template(const std::filesystem::path& file);
  /// Makes this the only template: turns under the words "System:", "User:" and "Assistant:", for a model
  /// that has none. Its turns end in eos_token. Throws Error if the model has no eos_token.
  void use_plain_template();

  /// The template with or without tools. Throws Error as ChatTemplate, and if there is none.
  ChatTemplate choose(bool with_tools) const;

  /// The same prompt as apply_chat_template's. `request` is an object with `messages`, and optionally
  /// `tools`, `documents`, `add_generation_prompt` and further variables. Throws Error naming the key.
  std::string prompt(const nlohmann::ordered_json& request) const;
  /// The same with the parts that the template marks as the assistant's.
  RenderedChat rendered(const nlohmann::ordered_json& request) const;

 private:
  struct Source {
    std::string text, origin;
  };

  void add(std::string name, std::string text, const std::filesystem::path& origin);
  void read_settings(const std::filesystem::path& directory);
  void read_gguf(const std::filesystem::path& file);
  void read_config_templates(const std::filesystem::path& file);
  void read_template_files(const std::filesystem::path& directory);

  std::map<std::string, Source> templates_;
  std::vector<std::pair<std::string, std::string>> special_tokens_;
};

}  // namespace zoo
