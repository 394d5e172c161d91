#include "tokenizer/files/pipeline_json.h"

#include <nlohmann/json.hpp>

namespace zoo {

void fail_unknown_type(const JsonSection& section, std::string_view what, std::string_view known) {
  section.fail("type", "is ", section.text("type"), ", a ", what, " that is not supported: expected one of ",
               known);
}

TextPattern read_pattern(const JsonSection& section, const char* key) {
  // Plain text, in some older files.
  if (const nlohmann::json* plain = section.find(key); plain != nullptr && plain->is_string()) {
    return TextPattern::literal(plain->get<std::string>());
  }
  const JsonSection pattern = section.section(key);
  if (pattern.find("String") != nullptr) return TextPattern::literal(pattern.text("String"));
  const std::string expression = pattern.text("Regex");
  try {
    return TextPattern::regex(expression);
  } catch (const Error& error) {
    pattern.fail("Regex", "is ", error.what());
  }
}

AddedToken read_added_token(const JsonSection& section) {
  AddedToken token;
  token.content = section.text("content");
  token.special = section.flag("special", false);
  token.single_word = section.flag("single_word", false);
  token.lstrip = section.flag("lstrip", false);
  token.rstrip = section.flag("rstrip", false);
  token.normalized = section.flag("normalized", !token.special);
  return token;
}

void read_added_tokens(const JsonSection& root, Pipeline& pipeline) {
  if (root.find("added_tokens") == nullptr) return;
  TokenRegistry registry(pipeline);
  for (const JsonSection& section : root.sections("added_tokens")) {
    AddedToken token = read_added_token(section);
    if (!token.content.empty()) registry.add(std::move(token));
  }
}

Pipeline read_pipeline(const JsonSection& root) {
  Pipeline pipeline;
  pipeline.kind = kind_of_model(root);
  read_normalizer(root, pipeline);
  read_pre_tokenizer(root, pipeline);
  read_model(root, pipeline);
  read_added_tokens(root, pipeline);
  read_post_processor(root, pipeline);
  read_decoder(root, pipeline);
  return pipeline;
}

}  // namespace zoo
