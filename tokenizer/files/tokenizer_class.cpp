#include "tokenizer/files/tokenizer_class.h"

#include <algorithm>
#include <array>

#include "data/base/error.h"
#include "tokenizer/files/shifted_pieces.h"
#include "tokenizer/files/tokenizer_json.h"
#include "tokenizer/pipeline/word_piece_model.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

using Piece = EncodingTemplate::Piece;

// The tokens around one text; around two, which stand side by side.
EncodingTemplate around(const std::vector<Piece>& before, const std::vector<Piece>& after) {
  EncodingTemplate result;
  result.single = before;
  result.single.push_back({Piece::Kind::first_text, 0, {}});
  result.pair = result.single;
  result.pair.push_back({Piece::Kind::second_text, 0, {}});
  for (std::vector<Piece>* pieces : {&result.single, &result.pair})
    pieces->insert(pieces->end(), after.begin(), after.end());
  return result;
}

// Classes that use only the vocabulary of a tokenizer.json and build the rest themselves: their added tokens
// are those that the settings list.
constexpr std::array<std::string_view, 14> kRebuilding{
    "BertTokenizer",    "GPT2Tokenizer",    "RobertaTokenizer",   "T5Tokenizer",     "LlamaTokenizer",
    "MBartTokenizer",   "MBart50Tokenizer", "NllbTokenizer",      "Qwen2Tokenizer",  "GemmaTokenizer",
    "PegasusTokenizer", "MPNetTokenizer",   "DebertaV2Tokenizer", "GPTNeoXTokenizer"};

// The normalizer, pre-tokenizer and decoder that the classes of sentencepiece's unigram models build;
// `charsmap` is the table of characters in the file, if it has one.
void set_sentencepiece_parts(const std::string& name, Normalizer charsmap, Pipeline& pipeline) {
  const bool is_mbart = name == "MBartTokenizer", splits_at_spaces = is_mbart || name == "T5Tokenizer";
  const MetaspaceOptions metaspace{.prepend = MetaspaceOptions::Prepend::always};
  pipeline.normalizer = is_mbart ? nullptr : std::move(charsmap);
  pipeline.pre_tokenizer = metaspace_pre_tokenizer(metaspace);
  if (splits_at_spaces) {
    pipeline.pre_tokenizer =
        pre_tokenizer_sequence({whitespace_split_pre_tokenizer(), std::move(pipeline.pre_tokenizer)});
  } else if (pipeline.normalizer || name == "MBart50Tokenizer") {
    std::vector<Normalizer> steps{replace_normalizer(TextPattern::regex(" {2,}"), " ")};
    if (pipeline.normalizer) steps.insert(steps.begin(), pipeline.normalizer);
    pipeline.normalizer = normalizer_sequence(std::move(steps));
  }
  pipeline.decoder = metaspace_decoder(metaspace.replacement, /*drops_first=*/true);
  pipeline.needs_source = pipeline.lowercases = false;
  pipeline.only_splits = std::nullopt;
}

// The classes of languages take the spaces before a mask, unless a file has its rules.
void set_mask_rules(TokenizerSettings& settings) {
  AddedToken& mask = settings.roles.at(SpecialToken::mask);
  const bool is_listed =
      std::any_of(settings.added_tokens_decoder.begin(), settings.added_tokens_decoder.end(),
                  [&](const auto& entry) { return entry.second.content == mask.content; });
  if (!settings.mask_has_rules && !is_listed) mask.lstrip = mask.normalized = true;
}

}  // namespace

void set_bert_parts(const TokenizerSettings& settings, Pipeline& pipeline) {
  WordPieceOptions options;
  options.unk_token = settings.roles.at(SpecialToken::unk).content;
  pipeline.model = std::make_shared<WordPieceModel>(pipeline.vocabulary, options);
  pipeline.marks_subwords = true;
  BertNormalizerOptions cleaning;
  cleaning.handle_chinese_chars = settings.tokenize_chinese_chars.value_or(true);
  cleaning.strip_accents = settings.strip_accents;
  cleaning.lowercase = settings.do_lower_case.value_or(true);
  pipeline.bert = cleaning;
  pipeline.normalizer = bert_normalizer(cleaning);
  pipeline.lowercases = false;
  pipeline.only_splits = std::nullopt;
  pipeline.pre_tokenizer = bert_pre_tokenizer();
  pipeline.decoder = word_piece_decoder("##", true);
}

void TokenizerSettings::add_sentinels() {
  const bool has_some =
      std::any_of(additional_special_tokens.begin(), additional_special_tokens.end(),
                  [](const AddedToken& token) { return token.content.starts_with("<extra_id_"); });
  if (names_extra_tokens || has_some) return;
  for (std::int64_t i = 0; i < extra_ids.value_or(100); ++i) {
    additional_special_tokens.push_back(special_token("<extra_id_" + std::to_string(i) + ">"));
  }
}

void apply_class(TokenizerSettings& settings, Normalizer charsmap, Pipeline& pipeline) {
  settings.add_bos_token = settings.add_eos_token = std::nullopt;
  if (!settings.names_class) return;
  const std::string& name = settings.tokenizer_class;
  if (std::find(kRebuilding.begin(), kRebuilding.end(), name) != kRebuilding.end())
    pipeline.added_tokens.clear();
  if (name == "BertTokenizer" && pipeline.kind == "wordpiece") set_bert_parts(settings, pipeline);
  if ((name == "GPT2Tokenizer" || name == "RobertaTokenizer") && pipeline.model_reads_bytes) {
    const bool prefix = settings.add_prefix_space.value_or(false);
    pipeline.pre_tokenizer = byte_level_pre_tokenizer({.add_prefix_space = prefix, .maps_bytes = false});
    pipeline.only_splits = prefix || pipeline.normalizer ? std::nullopt : std::optional(SplitPattern::gpt2);
  }
  if (name == "T5Tokenizer") settings.add_sentinels();
  const bool has_languages = name == "NllbTokenizer" || name.starts_with("MBart");
  if (has_languages) set_mask_rules(settings);
  if (name.starts_with("MBart") && !settings.names_extra_tokens) {
    std::vector<AddedToken> languages;
    for (const std::string_view language : mbart_languages(name == "MBart50Tokenizer"))
      languages.push_back(special_token(std::string(language)));
    auto& extra = settings.additional_special_tokens;
    extra.insert(name == "MBartTokenizer" ? extra.begin() : extra.end(), languages.begin(), languages.end());
  }
  if (has_languages || name == "T5Tokenizer") set_sentencepiece_parts(name, std::move(charsmap), pipeline);
  if (name == "LlamaTokenizer" && pipeline.kind == "bpe") {
    pipeline.normalizer = nullptr;
    set_llama_spaces(settings, pipeline);
  }
}

void set_class_template(const TokenizerSettings& settings, Pipeline& pipeline, const fs::path& file) {
  if (!settings.names_class) return;
  const std::string& name = settings.tokenizer_class;
  const auto id_of = [&](const std::string& text) {
    const auto id = TokenRegistry(pipeline).find(text);
    if (!id) throw Error(file, ": has no token '", text, "', which ", name, " puts beside every text");
    return *id;
  };
  const auto role = [&](SpecialToken role) { return id_of(settings.roles.at(role).content); };
  const auto piece = [](TokenId id) { return Piece{Piece::Kind::special, 0, {id}}; };
  const bool is_nllb = name == "NllbTokenizer", is_mbart = name == "MBartTokenizer";
  if (name == "BertTokenizer" || name == "DebertaV2Tokenizer") {
    pipeline.encoding_template = bert_template(role(SpecialToken::cls), role(SpecialToken::sep));
  } else if (name == "RobertaTokenizer" || name == "MPNetTokenizer") {
    pipeline.encoding_template = roberta_template(role(SpecialToken::cls), role(SpecialToken::sep));
  } else if (name == "T5Tokenizer") {
    const Piece end = piece(role(SpecialToken::eos));
    const Piece first{Piece::Kind::first_text, 0, {}}, second{Piece::Kind::second_text, 0, {}};
    pipeline.encoding_template = {{first, end}, {first, end, second, end}};
  } else if (name == "PegasusTokenizer") {
    pipeline.encoding_template = around({}, {piece(role(SpecialToken::eos))});
  } else if (is_nllb || is_mbart || name == "MBart50Tokenizer") {
    const Piece end = piece(role(SpecialToken::eos));
    const Piece language = piece(id_of(settings.src_lang.value_or(is_nllb ? "eng_Latn" : "en_XX")));
    const bool language_ends = is_mbart || (is_nllb && settings.legacy_behaviour.value_or(false));
    pipeline.encoding_template = language_ends ? around({}, {end, language}) : around({language}, {end});
  } else if (name == "GPTNeoXTokenizer") {
    pipeline.encoding_template = plain_template();
  }
}

void set_llama_spaces(const TokenizerSettings& settings, Pipeline& pipeline) {
  using Prepend = MetaspaceOptions::Prepend;
  const bool prepends = settings.add_prefix_space.value_or(true);
  MetaspaceOptions metaspace;
  metaspace.prepend = !prepends                         ? Prepend::never
                      : settings.legacy.value_or(false) ? Prepend::always
                                                        : Prepend::first;
  metaspace.split = false;
  pipeline.needs_source = metaspace.prepend == Prepend::first;
  pipeline.pre_tokenizer = metaspace_pre_tokenizer(metaspace);
  std::vector<TokenDecoder> decoders{replace_decoder(TextPattern::literal("\u2581"), " "),
                                     byte_fallback_decoder(), fuse_decoder()};
  if (prepends) decoders.push_back(strip_decoder(' ', 1, 0));
  pipeline.decoder = decoder_sequence(std::move(decoders));
}

}  // namespace zoo
