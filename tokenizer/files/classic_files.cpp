#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "data/base/atomic_file.h"
#include "data/base/json.h"
#include "data/base/lines.h"
#include "tokenizer/files/file_readers.h"
#include "tokenizer/files/json_section.h"
#include "tokenizer/files/tokenizer_class.h"
#include "tokenizer/pipeline/bpe_model.h"
#include "tokenizer/pipeline/word_piece_model.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string read_text_file(const fs::path& path) {
  std::string text = read_model_file(path);
  require_utf8(text, path.string());
  return text;
}

}  // namespace

MergePairs read_merges_txt(const fs::path& path) {
  MergePairs merges;
  const std::string text = read_text_file(path);
  for (const auto& [number, line, file] : every_line(text)) {
    if (line.starts_with("#version")) continue;
    const std::size_t space = line.find(' ');
    if (space == line.npos || line.find(' ', space + 1) != line.npos)
      throw Error(path, ": line ", number, " is '", excerpt(line, 60), "': expected two tokens");
    merges.emplace_back(line.substr(0, space), line.substr(space + 1));
  }
  return merges;
}

std::vector<VocabularyEntry> read_vocabulary_object(const fs::path& path) {
  const json root = read_json(path, kMostVocabulary);
  std::vector<VocabularyEntry> vocabulary;
  for (const auto& [text, id] : root.items()) {
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() > 4'000'000)
      throw Error(path, ": ", json(text).dump(), " is ", id.is_structured() ? id.type_name() : id.dump(),
                  ": expected an id");
    vocabulary.push_back({text, id.get<TokenId>()});
  }
  if (vocabulary.empty()) throw Error(path, ": is empty: expected tokens with their ids");
  return vocabulary;
}

std::unique_ptr<Tokenizer> read_vocab_txt(const fs::path& path, TokenizerSettings settings) {
  const bool is_mpnet = settings.tokenizer_class == "MPNetTokenizer";
  if (!is_mpnet) settings.use_class("BertTokenizer");
  Pipeline pipeline;
  const std::string text = read_text_file(path);
  for (const auto& [number, line, file] : every_line(text))
    pipeline.vocabulary.push_back({std::string(line), static_cast<TokenId>(number - 1)});
  if (pipeline.vocabulary.empty()) throw Error(path, ": is empty: expected a token a line");

  set_class_parts(settings, path, pipeline);
  pipeline.model = std::make_shared<WordPieceModel>(
      pipeline.vocabulary, WordPieceOptions{.unk_token = settings.roles.at(SpecialToken::unk).content});
  pipeline.marks_subwords = true;
  apply_settings(settings, pipeline);
  set_class_template(settings, pipeline, path);
  return tokenizer_of(std::move(pipeline), settings, path);
}

std::unique_ptr<Tokenizer> read_vocab_json(const fs::path& path, TokenizerSettings settings) {
  const std::string& name = settings.tokenizer_class;
  if (name.empty()) settings.use_class("GPT2Tokenizer");
  constexpr std::array kKnown{"GPT2Tokenizer", "RobertaTokenizer", "GPTNeoXTokenizer", "Qwen2Tokenizer"};
  if (std::ranges::count(kKnown, name) == 0)
    throw Error(
        path,
        ": is read as that of GPT2Tokenizer, RobertaTokenizer, GPTNeoXTokenizer or Qwen2Tokenizer, got ",
        name, ": of others tokenizer.json is read");
  const fs::path merges = path.parent_path() / "merges.txt";
  Pipeline pipeline;
  set_class_parts(settings, path, pipeline);
  pipeline.kind = "byte_bpe";
  pipeline.vocabulary = read_vocabulary_object(path);
  try {
    pipeline.model = std::make_shared<BpeModel>(pipeline.vocabulary, read_merges_txt(merges),
                                                BpeOptions{.byte_level = true});
  } catch (const Error& error) {
    const std::string message = error.what();
    throw Error(message.find(merges.string()) == message.npos ? merges.string() + ": " : "", message);
  }
  apply_settings(settings, pipeline);
  if (name == "RobertaTokenizer") set_class_template(settings, pipeline, path);
  return tokenizer_of(std::move(pipeline), settings, path, {"merges.txt"});
}

}  // namespace zoo
