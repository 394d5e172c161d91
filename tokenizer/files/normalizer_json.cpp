#include <nlohmann/json.hpp>

#include "data/base/base64.h"
#include "tokenizer/files/tokenizer_json.h"

namespace zoo {
namespace {

BertNormalizerOptions read_bert(const JsonSection& section) {
  BertNormalizerOptions options;
  options.clean_text = section.flag("clean_text", true);
  options.handle_chinese_chars = section.flag("handle_chinese_chars", true);
  if (section.find("strip_accents") != nullptr) options.strip_accents = section.flag("strip_accents", false);
  options.lowercase = section.flag("lowercase", true);
  return options;
}

Normalizer read_precompiled(const JsonSection& section) {
  const char* key = "precompiled_charsmap";
  const auto map = decode_base64(section.text(key, ""));
  if (!map) section.fail(key, "is not base64");
  try {
    return precompiled_normalizer(*map);
  } catch (const Error& error) {
    section.fail(key, "cannot be used: ", error.what());
  }
}

bool is_bert(std::string_view type) { return type == "BertNormalizer" || type == "Bert"; }

Normalizer read(const JsonSection& section, const std::string& type) {
  if (is_bert(type)) return bert_normalizer(read_bert(section));
  if (type == "NFC") return normal_form(NormalForm::nfc);
  if (type == "NFD") return normal_form(NormalForm::nfd);
  if (type == "NFKC") return normal_form(NormalForm::nfkc);
  if (type == "NFKD") return normal_form(NormalForm::nfkd);
  if (type == "Lowercase") return lowercase_all;
  if (type == "StripAccents") return remove_accents;
  if (type == "Strip")
    return strip_normalizer(section.flag("strip_left", true), section.flag("strip_right", true));
  if (type == "Replace") return replace_normalizer(read_pattern(section, "pattern"), section.text("content"));
  if (type == "Prepend") return prepend_normalizer(section.text("prepend"));
  if (type == "Nmt") return apply_nmt_rules;
  if (type == "ByteLevel") return map_to_byte_level;
  if (type == "Precompiled") return read_precompiled(section);
  fail_unknown_type(
      section, "normalizer",
      "BertNormalizer, NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, Strip, Replace, Prepend, Nmt, "
      "ByteLevel, Precompiled, Sequence");
}

}  // namespace

void read_normalizer(const JsonSection& root, Pipeline& pipeline) {
  if (root.find("normalizer") == nullptr) return;
  const JsonSection section = root.section("normalizer");
  std::vector<Normalizer> normalizers;
  for (const JsonSection& part : all_parts(section, "normalizers")) {
    const std::string type = part.text("type");
    normalizers.push_back(named_normalizer("the normalizer " + type, read(part, type)));
    pipeline.lowercases = pipeline.lowercases || type == "Lowercase";
  }
  pipeline.normalizer = in_sequence(std::move(normalizers));
  if (is_bert(section.text("type"))) pipeline.bert = read_bert(section);
}

}  // namespace zoo
