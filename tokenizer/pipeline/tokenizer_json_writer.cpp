#include "tokenizer/pipeline/tokenizer_json_writer.h"

#include <nlohmann/json.hpp>

#include "data/base/json.h"
#include "tokenizer/pipeline/pipeline.h"

namespace zoo {

using nlohmann::json;

void write_tokenizer_json(const std::filesystem::path& directory, const json& sections) {
  json file = {{"version", "1.0"},         {"truncation", nullptr},
               {"padding", nullptr},       {"added_tokens", json::array()},
               {"normalizer", nullptr},    {"pre_tokenizer", nullptr},
               {"post_processor", nullptr}};
  file.update(sections);
  write_json(directory / "tokenizer.json", file);
}

json vocabulary_json(std::span<const std::string> tokens) {
  json vocabulary = json::object();
  for (std::size_t id = 0; id < tokens.size(); ++id) vocabulary[tokens[id]] = id;
  return vocabulary;
}

json bpe_model_json(std::span<const std::string> tokens, json merges) {
  return {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", nullptr},
          {"continuing_subword_prefix", nullptr},
          {"end_of_word_suffix", nullptr},
          {"fuse_unk", false},
          {"byte_fallback", false},
          {"ignore_merges", false},
          {"vocab", vocabulary_json(tokens)},
          {"merges", std::move(merges)}};
}

json byte_level_json(bool add_prefix_space, bool trim_offsets, bool use_regex) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", add_prefix_space},
          {"trim_offsets", trim_offsets},
          {"use_regex", use_regex}};
}

json sequence_json(const char* key, json parts) { return {{"type", "Sequence"}, {key, std::move(parts)}}; }

json replace_json(json pattern, std::string_view content) {
  return {{"type", "Replace"}, {"pattern", std::move(pattern)}, {"content", content}};
}

json split_json(std::string_view expression) {
  return {
      {"type", "Split"}, {"pattern", {{"Regex", expression}}}, {"behavior", "Isolated"}, {"invert", false}};
}

json metaspace_json(const char* scheme, bool split) {
  return {{"type", "Metaspace"}, {"replacement", kSpaceMark}, {"prepend_scheme", scheme}, {"split", split}};
}

json bert_normalizer_json(const BertNormalizerOptions& options) {
  json normalizer{{"type", "BertNormalizer"},
                  {"clean_text", options.clean_text},
                  {"handle_chinese_chars", options.handle_chinese_chars},
                  {"strip_accents", nullptr},
                  {"lowercase", options.lowercase}};
  if (options.strip_accents) normalizer["strip_accents"] = *options.strip_accents;
  return normalizer;
}

json byte_fallback_decoder_json(bool drops_first_space) {
  json decoders{replace_json({{"String", kSpaceMark}}, " "), {{"type", "ByteFallback"}}, {{"type", "Fuse"}}};
  if (drops_first_space)
    decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1U}, {"stop", 0U}});
  return sequence_json("decoders", std::move(decoders));
}

json template_json(const std::vector<std::string>& single, const std::vector<std::string>& pair,
                   const std::function<std::int64_t(const std::string&)>& id, int second_type) {
  json special = json::object();
  const auto pieces = [&](const std::vector<std::string>& names) {
    json list = json::array();
    for (const std::string& name : names) {
      const int type = list.size() < single.size() ? 0 : second_type;
      const bool is_text = name == "A" || name == "B";
      list.push_back({{is_text ? "Sequence" : "SpecialToken", {{"id", name}, {"type_id", type}}}});
      if (!is_text) special[name] = {{"id", name}, {"ids", {id(name)}}, {"tokens", {name}}};
    }
    return list;
  };
  json result{{"type", "TemplateProcessing"}, {"single", pieces(single)}, {"pair", pieces(pair)}};
  result["special_tokens"] = special;
  return result;
}

json added_token_json(const AddedToken& token) {
  return {{"id", token.id},          {"content", token.content}, {"single_word", token.single_word},
          {"lstrip", token.lstrip},  {"rstrip", token.rstrip},   {"normalized", token.normalized},
          {"special", token.special}};
}

json fast_tokenizer_config() {
  return {{"tokenizer_class", "PreTrainedTokenizerFast"}, {"clean_up_tokenization_spaces", false}};
}

}  // namespace zoo
