#include <nlohmann/json.hpp>

#include "tokenizer/files/tokenizer_json.h"
#include "tokenizer/pipeline/bpe_model.h"
#include "tokenizer/pipeline/unigram_model.h"
#include "tokenizer/pipeline/word_piece_model.h"

namespace zoo {
namespace {

using nlohmann::json;

// Limits gaps between ids: the table of texts by id is as long as the largest id.
constexpr std::uint64_t kMaxId = 4'000'000;

std::vector<VocabularyEntry> read_vocabulary(const JsonSection& model) {
  std::vector<VocabularyEntry> vocabulary;
  for (const auto& [text, id] : model.require("vocab", JsonType::object).items()) {
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() > kMaxId)
      model.fail("vocab[" + json(text).dump() + "]", "is ", id.is_structured() ? id.type_name() : id.dump(),
                 ": expected an integer from 0 to ", kMaxId);
    vocabulary.push_back({text, id.get<TokenId>()});
  }
  if (vocabulary.empty()) model.fail("vocab", "is empty");
  return vocabulary;
}

void read_bpe(const JsonSection& model, Pipeline& pipeline) {
  if (const json* dropout = model.find("dropout"); dropout != nullptr && *dropout != 0)
    model.fail("dropout", "is not supported: expected null");
  BpeOptions options;
  if (model.find("unk_token") != nullptr) options.unk_token = model.text("unk_token");
  options.continuing_subword_prefix = model.text("continuing_subword_prefix", "");
  pipeline.marks_subwords = !options.continuing_subword_prefix.empty();
  options.end_of_word_suffix = model.text("end_of_word_suffix", "");
  options.fuse_unk = model.flag("fuse_unk", false);
  options.byte_fallback = model.flag("byte_fallback", false);
  options.ignore_merges = model.flag("ignore_merges", false);
  options.byte_level = pipeline.model_reads_bytes;
  if (options.byte_level) pipeline.kind = "byte_bpe";
  pipeline.vocabulary = read_vocabulary(model);
  const MergePairs merges = read_merges(model);
  try {
    pipeline.model = std::make_shared<BpeModel>(pipeline.vocabulary, merges, options);
  } catch (const Error& error) {
    throw Error(model.file(), ": model: ", error.what());
  }
}

void read_word_piece(const JsonSection& model, Pipeline& pipeline) {
  WordPieceOptions options;
  options.unk_token = model.text("unk_token", options.unk_token);
  options.continuing_subword_prefix =
      model.text("continuing_subword_prefix", options.continuing_subword_prefix);
  pipeline.marks_subwords = !options.continuing_subword_prefix.empty();
  options.max_input_chars_per_word = static_cast<std::size_t>(model.count("max_input_chars_per_word", 100));
  pipeline.vocabulary = read_vocabulary(model);
  pipeline.model = std::make_shared<WordPieceModel>(pipeline.vocabulary, options);
}

void read_unigram(const JsonSection& model, Pipeline& pipeline) {
  std::vector<UnigramPiece> pieces;
  for (const json& entry : model.require("vocab", JsonType::array)) {
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() || !entry[1].is_number())
      model.fail("vocab[" + std::to_string(pieces.size()) + "]", "is ",
                 entry.is_structured() ? entry.type_name() : entry.dump(), ": expected a text and a number");
    pipeline.vocabulary.push_back({entry[0].get<std::string>(), static_cast<TokenId>(pieces.size())});
    pieces.push_back({entry[0].get<std::string>(), entry[1].get<double>()});
  }
  if (pieces.empty()) model.fail("vocab", "is empty");
  UnigramOptions options;
  options.byte_fallback = model.flag("byte_fallback", false);
  if (model.find("unk_id") != nullptr) options.unk_id = static_cast<TokenId>(model.count("unk_id", 0));
  try {
    pipeline.model = std::make_shared<UnigramModel>(pieces, options);
  } catch (const Error& error) {
    throw Error(model.file(), ": model: ", error.what());
  }
}

// The library's first versions wrote no type.
std::string type_of(const JsonSection& model) {
  if (model.find("type") != nullptr) return model.text("type");
  if (model.find("merges") != nullptr) return "BPE";
  if (const json* vocab = model.find("vocab"); vocab != nullptr && vocab->is_array()) return "Unigram";
  return model.find("max_input_chars_per_word") != nullptr ? "WordPiece" : model.text("type");
}

}  // namespace

MergePairs read_merges(const JsonSection& model) {
  MergePairs merges;
  for (const json& merge : model.require("merges", JsonType::array)) {
    const std::string place = "merges[" + std::to_string(merges.size()) + "]";
    if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      merges.emplace_back(merge[0].get<std::string>(), merge[1].get<std::string>());
      continue;
    }
    if (!merge.is_string()) model.fail(place, "is ", merge.type_name(), ": expected two tokens");
    const auto& text = merge.get_ref<const std::string&>();
    const std::size_t space = text.find(' ');
    if (space == text.npos || text.find(' ', space + 1) != text.npos)
      model.fail(place, "is ", merge.dump(), ": expected two tokens with a space between them");
    merges.emplace_back(text.substr(0, space), text.substr(space + 1));
  }
  return merges;
}

std::string kind_of_model(const JsonSection& root) {
  const std::string type = type_of(root.section("model"));
  if (type == "BPE") return "bpe";
  if (type == "WordPiece") return "wordpiece";
  if (type == "WordLevel") return "word";
  if (type == "Unigram") return "unigram";
  root.section("model").fail("type", "is ", type,
                             ", which is not supported: expected BPE, WordPiece, WordLevel or Unigram");
}

void read_model(const JsonSection& root, Pipeline& pipeline) {
  const JsonSection model = root.section("model");
  if (pipeline.kind == "bpe") {
    read_bpe(model, pipeline);
  } else if (pipeline.kind == "wordpiece") {
    read_word_piece(model, pipeline);
  } else if (pipeline.kind == "word") {
    pipeline.vocabulary = read_vocabulary(model);
    pipeline.model = std::make_shared<WordLevelModel>(pipeline.vocabulary, model.text("unk_token", "<unk>"));
  } else {
    read_unigram(model, pipeline);
  }
}

}  // namespace zoo
