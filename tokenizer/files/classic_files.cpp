#include "tokenizer/files/classic_files.h"

#include <nlohmann/json.hpp>

#include "data/base/atomic_file.h"
#include "data/base/json_file.h"
#include "tokenizer/files/json_section.h"
#include "tokenizer/files/tokenizer_class.h"
#include "tokenizer/pipeline/bpe_model.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Piece = EncodingTemplate::Piece;

template <class Function>
void for_each_line(std::string_view text, Function f) {
  for (std::size_t number = 0; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    f(line, number);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

std::string read_text_file(const fs::path& path) {
  std::string text = read_model_file(path);
  require_utf8(text, path.string());
  return text;
}

std::string token_of(const TokenizerSettings& settings, SpecialToken role, const char* if_absent) {
  const auto found = settings.roles.find(role);
  return found == settings.roles.end() ? if_absent : found->second.content;
}

TokenId require_token(const TokenRegistry& registry, const std::string& token, const fs::path& path) {
  const auto id = registry.find(token);
  if (!id) throw Error(path, ": has no token ", token, ", which ends or begins every text");
  return *id;
}

MergePairs read_merges_txt(const fs::path& path) {
  MergePairs merges;
  const std::string text = read_text_file(path);
  for_each_line(text, [&](std::string_view line, std::size_t number) {
    if (line.starts_with("#version")) return;
    const std::size_t space = line.find(' ');
    if (space == line.npos || line.find(' ', space + 1) != line.npos) {
      throw Error(path, ": line ", number + 1, " is '", excerpt(line, 60), "': expected two tokens");
    }
    merges.emplace_back(line.substr(0, space), line.substr(space + 1));
  });
  return merges;
}

}  // namespace

std::vector<VocabularyEntry> read_vocabulary_object(const fs::path& path) {
  const json root = read_json(path, kMostVocabulary);
  std::vector<VocabularyEntry> vocabulary;
  for (const auto& [text, id] : root.items()) {
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() > 4'000'000) {
      throw Error(path, ": ", json(text).dump(), " is ", id.is_structured() ? id.type_name() : id.dump(),
                  ": expected an id");
    }
    vocabulary.push_back({text, id.get<TokenId>()});
  }
  if (vocabulary.empty()) throw Error(path, ": is empty: expected tokens with their ids");
  return vocabulary;
}

std::unique_ptr<Tokenizer> read_vocab_txt(const fs::path& path, TokenizerSettings settings) {
  settings.use_class("BertTokenizer");
  Pipeline pipeline;
  pipeline.kind = "wordpiece";
  const std::string text = read_text_file(path);
  for_each_line(text, [&](std::string_view line, std::size_t number) {
    pipeline.vocabulary.push_back({std::string(line), static_cast<TokenId>(number)});
  });
  if (pipeline.vocabulary.empty()) throw Error(path, ": is empty: expected a token a line");

  set_bert_parts(settings, pipeline);
  apply_settings(settings, pipeline);
  const TokenRegistry registry(pipeline);
  const TokenId cls = require_token(registry, token_of(settings, SpecialToken::cls, "[CLS]"), path);
  pipeline.encoding_template =
      bert_template(cls, require_token(registry, token_of(settings, SpecialToken::sep, "[SEP]"), path));
  return std::make_unique<PipelineTokenizer>(std::move(pipeline),
                                             tokenizer_files(settings, path.parent_path(), {"vocab.txt"}));
}

std::unique_ptr<Tokenizer> read_vocab_json(const fs::path& path, TokenizerSettings settings) {
  if (settings.tokenizer_class != "RobertaTokenizer") settings.use_class("GPT2Tokenizer");
  const fs::path merges = path.parent_path() / "merges.txt";
  Pipeline pipeline;
  pipeline.kind = "byte_bpe";
  pipeline.vocabulary = read_vocabulary_object(path);
  try {
    pipeline.model = std::make_shared<BpeModel>(pipeline.vocabulary, read_merges_txt(merges),
                                                BpeOptions{.byte_level = true});
  } catch (const Error& error) {
    const std::string message = error.what();
    throw Error(message.find(merges.string()) == message.npos ? merges.string() + ": " : "", message);
  }
  pipeline.model_reads_bytes = true;
  ByteLevelOptions splitting;
  splitting.add_prefix_space = settings.add_prefix_space.value_or(false);
  splitting.maps_bytes = false;
  pipeline.pre_tokenizer = byte_level_pre_tokenizer(splitting);
  if (!splitting.add_prefix_space) pipeline.only_splits = SplitPattern::gpt2;
  pipeline.decoder = byte_level_decoder(true);

  apply_settings(settings, pipeline);
  if (settings.tokenizer_class == "RobertaTokenizer") {
    const TokenRegistry registry(pipeline);
    const TokenId cls = require_token(registry, token_of(settings, SpecialToken::cls, "<s>"), path);
    pipeline.encoding_template =
        roberta_template(cls, require_token(registry, token_of(settings, SpecialToken::sep, "</s>"), path));
    if (settings.trim_offsets.value_or(true)) {
      pipeline.offset_trimming = Pipeline::OffsetTrimming{splitting.add_prefix_space};
    }
  }
  return std::make_unique<PipelineTokenizer>(
      std::move(pipeline), tokenizer_files(settings, path.parent_path(), {"vocab.json", "merges.txt"}));
}

}  // namespace zoo
