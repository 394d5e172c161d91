#include "tokenizer/files/tokenizer_class.h"

#include <algorithm>

#include "data/base/error.h"
#include "tokenizer/files/file_readers.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

using Piece = EncodingTemplate::Piece;

// The tokens around one text, or around two texts without a separator.
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

// In classes with language codes, a mask includes the spaces before it, unless a file has its rules.
void set_mask_rules(TokenizerSettings& settings) {
  AddedToken& mask = settings.roles.at(SpecialToken::mask);
  const bool is_listed =
      std::any_of(settings.added_tokens_decoder.begin(), settings.added_tokens_decoder.end(),
                  [&](const auto& entry) { return entry.second.content == mask.content; });
  if (!settings.mask_has_rules && !is_listed) mask.lstrip = mask.normalized = true;
}

struct ClassDefault {
  const char* tokenizer_class;
  SpecialToken role;
  const char* token;
};

constexpr std::array kDefaults{
    ClassDefault{"BertTokenizer", SpecialToken::unk, "[UNK]"},
    ClassDefault{"BertTokenizer", SpecialToken::sep, "[SEP]"},
    ClassDefault{"BertTokenizer", SpecialToken::pad, "[PAD]"},
    ClassDefault{"BertTokenizer", SpecialToken::cls, "[CLS]"},
    ClassDefault{"BertTokenizer", SpecialToken::mask, "[MASK]"},
    ClassDefault{"GPT2Tokenizer", SpecialToken::bos, "<|endoftext|>"},
    ClassDefault{"GPT2Tokenizer", SpecialToken::eos, "<|endoftext|>"},
    ClassDefault{"GPT2Tokenizer", SpecialToken::unk, "<|endoftext|>"},
    ClassDefault{"RobertaTokenizer", SpecialToken::bos, "<s>"},
    ClassDefault{"RobertaTokenizer", SpecialToken::eos, "</s>"},
    ClassDefault{"RobertaTokenizer", SpecialToken::unk, "<unk>"},
    ClassDefault{"RobertaTokenizer", SpecialToken::sep, "</s>"},
    ClassDefault{"RobertaTokenizer", SpecialToken::pad, "<pad>"},
    ClassDefault{"RobertaTokenizer", SpecialToken::cls, "<s>"},
    ClassDefault{"RobertaTokenizer", SpecialToken::mask, "<mask>"},
    ClassDefault{"T5Tokenizer", SpecialToken::eos, "</s>"},
    ClassDefault{"T5Tokenizer", SpecialToken::unk, "<unk>"},
    ClassDefault{"T5Tokenizer", SpecialToken::pad, "<pad>"},
    ClassDefault{"Qwen2Tokenizer", SpecialToken::eos, "<|endoftext|>"},
    ClassDefault{"Qwen2Tokenizer", SpecialToken::unk, "<|endoftext|>"},
    ClassDefault{"Qwen2Tokenizer", SpecialToken::pad, "<|endoftext|>"},
    ClassDefault{"GPTNeoXTokenizer", SpecialToken::bos, "<|endoftext|>"},
    ClassDefault{"GPTNeoXTokenizer", SpecialToken::eos, "<|endoftext|>"},
    ClassDefault{"GPTNeoXTokenizer", SpecialToken::unk, "<|endoftext|>"},
    ClassDefault{"GPTNeoXTokenizer", SpecialToken::pad, "<|padding|>"},
    ClassDefault{"GemmaTokenizer", SpecialToken::bos, "<bos>"},
    ClassDefault{"GemmaTokenizer", SpecialToken::eos, "<eos>"},
    ClassDefault{"GemmaTokenizer", SpecialToken::unk, "<unk>"},
    ClassDefault{"GemmaTokenizer", SpecialToken::pad, "<pad>"},
    ClassDefault{"GemmaTokenizer", SpecialToken::mask, "<mask>"},
    ClassDefault{"XLMRobertaTokenizer", SpecialToken::bos, "<s>"},
    ClassDefault{"XLMRobertaTokenizer", SpecialToken::eos, "</s>"},
    ClassDefault{"XLMRobertaTokenizer", SpecialToken::unk, "<unk>"},
    ClassDefault{"XLMRobertaTokenizer", SpecialToken::sep, "</s>"},
    ClassDefault{"XLMRobertaTokenizer", SpecialToken::pad, "<pad>"},
    ClassDefault{"XLMRobertaTokenizer", SpecialToken::cls, "<s>"},
    ClassDefault{"XLMRobertaTokenizer", SpecialToken::mask, "<mask>"},
    ClassDefault{"LlamaTokenizer", SpecialToken::bos, "<s>"},
    ClassDefault{"LlamaTokenizer", SpecialToken::eos, "</s>"},
    ClassDefault{"LlamaTokenizer", SpecialToken::unk, "<unk>"},
    ClassDefault{"AlbertTokenizer", SpecialToken::bos, "[CLS]"},
    ClassDefault{"AlbertTokenizer", SpecialToken::eos, "[SEP]"},
    ClassDefault{"AlbertTokenizer", SpecialToken::unk, "<unk>"},
    ClassDefault{"AlbertTokenizer", SpecialToken::sep, "[SEP]"},
    ClassDefault{"AlbertTokenizer", SpecialToken::pad, "<pad>"},
    ClassDefault{"AlbertTokenizer", SpecialToken::cls, "[CLS]"},
    ClassDefault{"AlbertTokenizer", SpecialToken::mask, "[MASK]"},
    ClassDefault{"MBartTokenizer", SpecialToken::bos, "<s>"},
    ClassDefault{"MBartTokenizer", SpecialToken::eos, "</s>"},
    ClassDefault{"MBartTokenizer", SpecialToken::unk, "<unk>"},
    ClassDefault{"MBartTokenizer", SpecialToken::sep, "</s>"},
    ClassDefault{"MBartTokenizer", SpecialToken::pad, "<pad>"},
    ClassDefault{"MBartTokenizer", SpecialToken::cls, "<s>"},
    ClassDefault{"MBartTokenizer", SpecialToken::mask, "<mask>"},
    ClassDefault{"MBart50Tokenizer", SpecialToken::eos, "</s>"},
    ClassDefault{"MBart50Tokenizer", SpecialToken::unk, "<unk>"},
    ClassDefault{"MBart50Tokenizer", SpecialToken::sep, "</s>"},
    ClassDefault{"MBart50Tokenizer", SpecialToken::pad, "<pad>"},
    ClassDefault{"MBart50Tokenizer", SpecialToken::cls, "<s>"},
    ClassDefault{"MBart50Tokenizer", SpecialToken::mask, "<mask>"},
    ClassDefault{"NllbTokenizer", SpecialToken::bos, "<s>"},
    ClassDefault{"NllbTokenizer", SpecialToken::eos, "</s>"},
    ClassDefault{"NllbTokenizer", SpecialToken::unk, "<unk>"},
    ClassDefault{"NllbTokenizer", SpecialToken::sep, "</s>"},
    ClassDefault{"NllbTokenizer", SpecialToken::pad, "<pad>"},
    ClassDefault{"NllbTokenizer", SpecialToken::cls, "<s>"},
    ClassDefault{"NllbTokenizer", SpecialToken::mask, "<mask>"},
    ClassDefault{"MPNetTokenizer", SpecialToken::bos, "<s>"},
    ClassDefault{"MPNetTokenizer", SpecialToken::eos, "</s>"},
    ClassDefault{"MPNetTokenizer", SpecialToken::sep, "</s>"},
    ClassDefault{"MPNetTokenizer", SpecialToken::cls, "<s>"},
    ClassDefault{"MPNetTokenizer", SpecialToken::unk, "[UNK]"},
    ClassDefault{"MPNetTokenizer", SpecialToken::pad, "<pad>"},
    ClassDefault{"MPNetTokenizer", SpecialToken::mask, "<mask>"},
    ClassDefault{"PegasusTokenizer", SpecialToken::eos, "</s>"},
    ClassDefault{"PegasusTokenizer", SpecialToken::unk, "<unk>"},
    ClassDefault{"PegasusTokenizer", SpecialToken::pad, "<pad>"},
    ClassDefault{"PegasusTokenizer", SpecialToken::mask, "<mask_2>"},
    ClassDefault{"DebertaV2Tokenizer", SpecialToken::bos, "[CLS]"},
    ClassDefault{"DebertaV2Tokenizer", SpecialToken::eos, "[SEP]"},
    ClassDefault{"DebertaV2Tokenizer", SpecialToken::unk, "[UNK]"},
    ClassDefault{"DebertaV2Tokenizer", SpecialToken::sep, "[SEP]"},
    ClassDefault{"DebertaV2Tokenizer", SpecialToken::pad, "[PAD]"},
    ClassDefault{"DebertaV2Tokenizer", SpecialToken::cls, "[CLS]"},
    ClassDefault{"DebertaV2Tokenizer", SpecialToken::mask, "[MASK]"},
};

}  // namespace

void TokenizerSettings::use_class(std::string name) {
  tokenizer_class = std::move(name);
  for (const ClassDefault& known : kDefaults) {
    if (known.tokenizer_class == tokenizer_class && !roles.contains(known.role)) {
      roles[known.role] = special_token(known.token);
    }
  }
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

void add_class_tokens(TokenizerSettings& settings) {
  const std::string& name = settings.tokenizer_class;
  // The constructor of a class adds its defaults to a vocabulary that lacks them.
  for (const auto& [role, token] : settings.roles) settings.named.push_back(role);
  if (name == "T5Tokenizer") settings.add_sentinels();
  const bool is_mbart = name.starts_with("MBart");
  if (name == "NllbTokenizer" || is_mbart) set_mask_rules(settings);
  if (!is_mbart || settings.names_extra_tokens) return;
  std::vector<AddedToken> languages;
  for (const std::string_view language : mbart_languages(name == "MBart50Tokenizer"))
    languages.push_back(special_token(std::string(language)));
  auto& extra = settings.additional_special_tokens;
  extra.insert(name == "MBartTokenizer" ? extra.begin() : extra.end(), languages.begin(), languages.end());
}

void reset_special_tokens(const TokenizerSettings& settings, Pipeline& pipeline) {
  TokenRegistry registry(pipeline);
  const auto reset = [&](const AddedToken& token) {
    if (!token.content.empty() && registry.find(token.content)) registry.add(special_token(token.content));
  };
  for (const auto& [role, token] : settings.roles) reset(token);
  for (const AddedToken& token : settings.additional_special_tokens) reset(token);
}

void set_class_template(const TokenizerSettings& settings, Pipeline& pipeline, const fs::path& file) {
  const std::string& name = settings.tokenizer_class;
  const auto id_of = [&](const std::string& text) {
    const auto id = TokenRegistry(pipeline).find(text);
    if (!id) throw Error(file, ": has no token '", text, "', which ", name, " puts beside every text");
    return *id;
  };
  const auto role = [&](SpecialToken role) { return id_of(settings.roles.at(role).content); };
  const auto around_texts = [&](EncodingTemplate (*make)(TokenId, TokenId), SpecialToken first,
                                SpecialToken last) {
    const TokenId begin = role(first);
    return make(begin, role(last));
  };
  const auto piece = [](TokenId id) { return Piece{Piece::Kind::special, 0, {id}}; };
  const bool is_nllb = name == "NllbTokenizer", is_mbart = name == "MBartTokenizer";
  if (name == "BertTokenizer" || name == "DebertaV2Tokenizer" || name == "AlbertTokenizer") {
    pipeline.encoding_template = around_texts(bert_template, SpecialToken::cls, SpecialToken::sep);
  } else if (name == "RobertaTokenizer" || name == "MPNetTokenizer") {
    pipeline.encoding_template = around_texts(roberta_template, SpecialToken::cls, SpecialToken::sep);
  } else if (name == "XLMRobertaTokenizer") {
    pipeline.encoding_template = around_texts(roberta_template, SpecialToken::bos, SpecialToken::eos);
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
  } else {
    return;  // keeps the file's template and how it trims offsets
  }
  pipeline.offset_trimming.reset();
  if (name == "MPNetTokenizer" || (name == "RobertaTokenizer" && settings.trim_offsets.value_or(true)))
    pipeline.offset_trimming =
        Pipeline::OffsetTrimming{name == "RobertaTokenizer" && settings.add_prefix_space.value_or(false)};
}

}  // namespace zoo
