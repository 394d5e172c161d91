#include <algorithm>
#include <optional>

#include <nlohmann/json.hpp>

#include "data/base/base64.h"
#include "tokenizer/files/tokenizer_class.h"
#include "tokenizer/files/tokenizer_json.h"
#include "tokenizer/pipeline/tokenizer_json_writer.h"
#include "tokenizer/text/split_patterns.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Parts of a tokenizer.json.
json byte_level(bool add_prefix_space, bool use_regex) {
  return {{"type", "ByteLevel"}, {"add_prefix_space", add_prefix_space}, {"use_regex", use_regex}};
}
json words(json metaspace_part) {
  return sequence_json("pretokenizers", {{{"type", "WhitespaceSplit"}}, std::move(metaspace_part)});
}
json one_space() { return replace_json({{"Regex", " {2,}"}}, " "); }

// The file's table of characters, null if there is none.
json charsmap_of(const json& tokenizer_json) {
  for (const json& step : parts_of(tokenizer_json, "normalizer", "normalizers"))
    if (step.is_object() && step.value("type", json()) == "Precompiled") return step;
  return {};
}

// What a class builds around a vocabulary, by key of tokenizer.json; for "model", its options.
struct Parts {
  const char* kind;
  json normalizer, pre_tokenizer, decoder, model;
};

using Make = Parts (*)(const TokenizerSettings& settings, const json& charsmap);

Parts bert_parts(const TokenizerSettings& settings, const json&) {
  return {"wordpiece",
          bert_normalizer_json({.handle_chinese_chars = settings.tokenize_chinese_chars.value_or(true),
                                .strip_accents = settings.strip_accents,
                                .lowercase = settings.do_lower_case.value_or(true)}),
          {{"type", "BertPreTokenizer"}},
          {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}},
          {{"unk_token", settings.roles.at(SpecialToken::unk).content},
           {"continuing_subword_prefix", "##"},
           {"max_input_chars_per_word", 100U}}};
}

Parts gpt2_parts(const TokenizerSettings& settings, const json&) {
  return {"bpe",
          nullptr,
          byte_level(settings.add_prefix_space.value_or(false), true),
          {{"type", "ByteLevel"}},
          json::object()};
}

Parts gpt_neox_parts(const TokenizerSettings& settings, const json& charsmap) {
  Parts parts = gpt2_parts(settings, charsmap);
  parts.normalizer = {{"type", "NFC"}};
  return parts;
}

Parts qwen2_parts(const TokenizerSettings& settings, const json& charsmap) {
  Parts parts = gpt_neox_parts(settings, charsmap);
  parts.pre_tokenizer =
      sequence_json("pretokenizers", {split_json(expression_of(SplitPattern::qwen2)),
                                      byte_level(settings.add_prefix_space.value_or(false), false)});
  return parts;
}

Parts llama_parts(const TokenizerSettings& settings, const json&) {
  const bool prepends = settings.add_prefix_space.value_or(true);
  const bool is_legacy = settings.legacy.value_or(false);
  return {"bpe",
          nullptr,
          metaspace_json(!prepends   ? "never"
                         : is_legacy ? "always"
                                     : "first",
                         false),
          byte_fallback_decoder_json(prepends),
          {{"fuse_unk", true}, {"byte_fallback", true}}};
}

Parts gemma_parts(const TokenizerSettings& settings, const json&) {
  return {"bpe",
          replace_json({{"String", " "}}, kSpaceMark),
          {{"type", "Split"},
           {"pattern", {{"String", " "}}},
           {"behavior", "MergedWithPrevious"},
           {"invert", false}},
          byte_fallback_decoder_json(false),
          {{"unk_token", settings.roles.at(SpecialToken::unk).content},
           {"fuse_unk", true},
           {"byte_fallback", true}}};
}

Parts unigram(std::uint64_t unk_id, json normalizer, json pre_tokenizer, json decoder) {
  return {
      "unigram", std::move(normalizer), std::move(pre_tokenizer), std::move(decoder), {{"unk_id", unk_id}}};
}

Parts t5_parts(const TokenizerSettings&, const json& charsmap) {
  return unigram(2, charsmap, words(metaspace_json("always", true)), metaspace_json("always", true));
}

Parts mbart_parts(const TokenizerSettings&, const json&) {
  return unigram(3, nullptr, words(metaspace_json("always", true)), metaspace_json("always", true));
}

Parts mbart_50_parts(const TokenizerSettings&, const json& charsmap) {
  json steps = json::array({one_space()});
  if (!charsmap.is_null()) steps.insert(steps.begin(), charsmap);
  return unigram(3, sequence_json("normalizers", std::move(steps)), metaspace_json("always", true),
                 metaspace_json("always", true));
}

Parts nllb_parts(const TokenizerSettings& settings, const json& charsmap) {
  return {"bpe",
          charsmap.is_null() ? json() : sequence_json("normalizers", {charsmap, one_space()}),
          metaspace_json("always", true),
          metaspace_json("always", true),
          {{"unk_token", settings.roles.at(SpecialToken::unk).content}, {"fuse_unk", true}}};
}

Parts pegasus_parts(const TokenizerSettings&, const json& charsmap) {
  const json first = charsmap.is_null() ? replace_json({{"Regex", "\n"}}, " ") : charsmap;
  Parts parts = unigram(0, sequence_json("normalizers", {first, one_space()}), metaspace_json("always", true),
                        metaspace_json("always", true));
  parts.model = json::object();  // keeps the file's unk_id: the class's token
  return parts;
}

Parts xlm_roberta_parts(const TokenizerSettings& settings, const json& charsmap) {
  const json spaces = metaspace_json(settings.add_prefix_space.value_or(true) ? "always" : "never", true);
  return unigram(3, charsmap, words(spaces), spaces);
}

Parts albert_parts(const TokenizerSettings& settings, const json& charsmap) {
  json steps{replace_json({{"String", "``"}}, "\""), replace_json({{"String", "''"}}, "\"")};
  if (!settings.keep_accents.value_or(false))
    steps.insert(steps.end(), {{{"type", "NFKD"}}, {{"type", "StripAccents"}}});
  if (settings.do_lower_case.value_or(true)) steps.push_back({{"type", "Lowercase"}});
  if (!charsmap.is_null()) steps.push_back(charsmap);
  Parts parts = xlm_roberta_parts(settings, charsmap);
  parts.normalizer = sequence_json("normalizers", std::move(steps));
  parts.model["unk_id"] = 1U;
  return parts;
}

Parts deberta_parts(const TokenizerSettings& settings, const json&) {
  json steps = json::array();
  if (settings.do_lower_case.value_or(false)) steps.push_back({{"type", "Lowercase"}});
  steps.push_back(replace_json({{"Regex", "\\s{2,}|[\\n\\r\\t]"}}, " "));
  steps.push_back({{"type", "NFC"}});
  steps.push_back({{"type", "Strip"}, {"strip_left", false}, {"strip_right", true}});
  const json spaces = metaspace_json(settings.add_prefix_space.value_or(true) ? "always" : "first", true);
  json splits = json::array({spaces});
  if (settings.split_by_punct)
    splits.insert(splits.begin(), json{{"type", "Punctuation"}, {"behavior", "Isolated"}});
  return unigram(1, sequence_json("normalizers", std::move(steps)),
                 sequence_json("pretokenizers", std::move(splits)), spaces);
}

constexpr std::pair<std::string_view, Make> kRebuilding[] = {
    {"BertTokenizer", bert_parts},         {"MPNetTokenizer", bert_parts},
    {"GPT2Tokenizer", gpt2_parts},         {"RobertaTokenizer", gpt2_parts},
    {"GPTNeoXTokenizer", gpt_neox_parts},  {"Qwen2Tokenizer", qwen2_parts},
    {"LlamaTokenizer", llama_parts},       {"GemmaTokenizer", gemma_parts},
    {"NllbTokenizer", nllb_parts},         {"T5Tokenizer", t5_parts},
    {"MBartTokenizer", mbart_parts},       {"MBart50Tokenizer", mbart_50_parts},
    {"PegasusTokenizer", pegasus_parts},   {"AlbertTokenizer", albert_parts},
    {"DebertaV2Tokenizer", deberta_parts}, {"XLMRobertaTokenizer", xlm_roberta_parts}};

// The id of the class's unknown token among Unigram's pieces, which has no score.
std::optional<std::size_t> unknown_piece(const TokenizerSettings& settings, const json& model) {
  const json pieces = model.value("vocab", json::array());
  const json unknown{settings.roles.at(SpecialToken::unk).content, 0.0};
  const auto found = std::ranges::find(pieces, unknown);
  return found == pieces.end() ? std::nullopt : std::optional<std::size_t>(found - pieces.begin());
}

Make find_class(const std::string& name) {
  const auto* found = std::ranges::find(kRebuilding, name, &std::pair<std::string_view, Make>::first);
  return found == std::end(kRebuilding) ? nullptr : found->second;
}

}  // namespace

bool rebuild_as_class(const TokenizerSettings& settings, const fs::path& file, json& tokenizer_json) {
  const Make make = find_class(settings.tokenizer_class);
  if (make == nullptr) return false;
  Parts parts = make(settings, charsmap_of(tokenizer_json));
  if (kind_of_model(JsonSection(file, "", tokenizer_json)) != parts.kind) return false;
  json& model = tokenizer_json["model"];
  // A list of characters, as tzoo writes it. Byte-level classes would lose those that are not letters.
  if (parts.decoder.value("type", json()) == "ByteLevel" && model.value("merges", json()) == json::array())
    return false;
  // The class makes a new model from the vocabulary and the merges.
  for (const char* key : {"unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk",
                          "byte_fallback", "ignore_merges", "dropout", "max_input_chars_per_word"})
    model.erase(key);
  model.update(parts.model);
  if (settings.tokenizer_class == "DebertaV2Tokenizer")
    model["unk_id"] = unknown_piece(settings, model).value_or(1);
  tokenizer_json["normalizer"] = std::move(parts.normalizer);
  tokenizer_json["pre_tokenizer"] = std::move(parts.pre_tokenizer);
  tokenizer_json["decoder"] = std::move(parts.decoder);
  tokenizer_json["added_tokens"] = json::array();
  return true;
}

void set_class_parts(const TokenizerSettings& settings, const fs::path& file, Pipeline& pipeline,
                     std::string_view charsmap) {
  json table;
  if (!charsmap.empty()) table = {{"type", "Precompiled"}, {"precompiled_charsmap", encode_base64(charsmap)}};
  Parts parts = find_class(settings.tokenizer_class)(settings, table);
  const json root{{"normalizer", std::move(parts.normalizer)},
                  {"pre_tokenizer", std::move(parts.pre_tokenizer)},
                  {"decoder", std::move(parts.decoder)}};
  const JsonSection section(file, "", root);
  pipeline.kind = parts.kind;
  read_normalizer(section, pipeline);
  read_pre_tokenizer(section, pipeline);
  read_decoder(section, pipeline);
}

}  // namespace zoo
