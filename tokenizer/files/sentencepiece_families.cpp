#include <unordered_map>

#include "data/base/atomic_file.h"
#include "data/base/error.h"
#include "tokenizer/files/file_readers.h"
#include "tokenizer/files/tokenizer_class.h"
#include "tokenizer/pipeline/bpe_model.h"
#include "tokenizer/sentencepiece/sentencepiece_file.h"
#include "tokenizer/sentencepiece/sentencepiece_tokenizer.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

// transformers runs these models without the library, by parts of a tokenizer.json made from the pieces.

namespace fs = std::filesystem;

// The text is split at control pieces and user-defined symbols before the model runs.
void add_symbols(const SentencePieceFile& file, TokenizerSettings& settings) {
  for (const SentencePieceFile::Piece& piece : file.pieces) {
    const bool is_symbol =
        piece.type == SentencePieceFile::Type::control || piece.type == SentencePieceFile::Type::user_defined;
    if (is_symbol) settings.additional_special_tokens.push_back(special_token(piece.text));
  }
}

// T5's (Raffel et al., 2020), with sentinels after the pieces, and ALBERT's (Lan et al., 2020).
Pipeline unigram(const SentencePieceFile& file, TokenizerSettings& settings, const fs::path& path) {
  const bool is_t5 = settings.tokenizer_class == "T5Tokenizer";
  std::vector<UnigramPiece> pieces;
  for (const SentencePieceFile::Piece& piece : file.pieces) pieces.push_back({piece.text, piece.score});
  for (std::int64_t i = is_t5 ? settings.extra_ids.value_or(100) - 1 : -1; i >= 0; --i)
    pieces.push_back({"<extra_id_" + std::to_string(i) + ">", 0});
  if (is_t5) settings.add_sentinels();
  return unigram_pipeline(settings, path, file.charsmap, pieces, is_t5 ? 2 : 1);
}

// Every pair of pieces that forms a piece, ordered by the id of the result, then by the left piece's length.
MergePairs merges_of(const std::vector<VocabularyEntry>& vocabulary) {
  std::unordered_map<std::string_view, TokenId> ids;
  for (const VocabularyEntry& entry : vocabulary) ids[entry.text] = entry.id;
  MergePairs merges;
  for (const VocabularyEntry& entry : vocabulary) {
    const std::string_view text = entry.text;
    if (ids[text] != entry.id) continue;
    for (std::size_t at = 0; at < text.size();) {
      at = character_end(text, at);
      const std::string_view left = text.substr(0, at), right = text.substr(at);
      if (!right.empty() && ids.contains(left) && ids.contains(right)) merges.emplace_back(left, right);
    }
  }
  return merges;
}

// Llama's (Touvron et al., 2023) and Gemma's: byte fallback, spaces preserved.
Pipeline bpe(const SentencePieceFile& file, const TokenizerSettings& settings, const fs::path& path) {
  Pipeline pipeline;
  set_class_parts(settings, path, pipeline);
  for (const SentencePieceFile::Piece& piece : file.pieces)
    pipeline.vocabulary.push_back({piece.text, static_cast<TokenId>(pipeline.vocabulary.size())});
  BpeOptions options{.fuse_unk = true, .byte_fallback = true};
  if (settings.tokenizer_class == "GemmaTokenizer")
    options.unk_token = settings.roles.at(SpecialToken::unk).content;
  pipeline.model = std::make_shared<BpeModel>(pipeline.vocabulary, merges_of(pipeline.vocabulary), options);
  apply_settings(settings, pipeline);
  pipeline.kind = "sentencepiece";
  return pipeline;
}

}  // namespace

std::unique_ptr<Tokenizer> read_sentencepiece(const fs::path& path, TokenizerSettings settings) {
  const std::string& name = settings.tokenizer_class;
  const bool is_bpe = name == "LlamaTokenizer" || name == "GemmaTokenizer";
  if (name != "T5Tokenizer" && name != "AlbertTokenizer" && !is_bpe)
    return std::make_unique<SentencePieceTokenizer>(SentencePieceTokenizer::load(path));
  const SentencePieceFile file = SentencePieceFile::parse(read_model_file(path), path.string());
  file.require_utf8_pieces(path.string());
  // The class would give other models different ids: those of another type and those with byte fallback.
  const bool fits = is_bpe ? !file.is_unigram : file.is_unigram && !file.has_byte_fallback;
  if (!fits) return std::make_unique<SentencePieceTokenizer>(SentencePieceTokenizer::load(path));
  add_symbols(file, settings);
  Pipeline pipeline;
  try {
    pipeline = is_bpe ? bpe(file, settings, path) : unigram(file, settings, path);
  } catch (const Error& error) {
    const std::string message = error.what();
    throw Error(message.find(path.string()) == message.npos ? path.string() + ": " : "", message);
  }
  return tokenizer_of(std::move(pipeline), settings, path);
}

}  // namespace zoo
