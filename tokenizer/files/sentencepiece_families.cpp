#include <unordered_map>

#include "data/base/atomic_file.h"
#include "data/base/error.h"
#include "tokenizer/files/class_parts.h"
#include "tokenizer/files/file_readers.h"
#include "tokenizer/pipeline/bpe_model.h"
#include "tokenizer/pipeline/unigram_model.h"
#include "tokenizer/sentencepiece/sentencepiece_file.h"
#include "tokenizer/sentencepiece/sentencepiece_tokenizer.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

// transformers runs the sentencepiece models of T5, ALBERT and Llama without the library: it builds the parts
// of a tokenizer.json from the pieces.

namespace fs = std::filesystem;
using Piece = EncodingTemplate::Piece;

// The text is split at control pieces and user-defined symbols before the model runs.
void add_symbols(const SentencePieceFile& file, TokenizerSettings& settings) {
  for (const SentencePieceFile::Piece& piece : file.pieces) {
    const bool is_symbol =
        piece.type == SentencePieceFile::Type::control || piece.type == SentencePieceFile::Type::user_defined;
    if (!is_symbol) continue;
    AddedToken token;
    token.content = piece.text;
    token.normalized = false;
    settings.additional_special_tokens.push_back(token);
  }
}

void set_unigram(const std::vector<UnigramPiece>& pieces, TokenId unk_id, Pipeline& pipeline) {
  for (const UnigramPiece& piece : pieces)
    pipeline.vocabulary.push_back({piece.text, static_cast<TokenId>(pipeline.vocabulary.size())});
  pipeline.model = std::make_shared<UnigramModel>(pieces, UnigramOptions{.unk_id = unk_id});
}

std::vector<UnigramPiece> unigram_pieces(const SentencePieceFile& file) {
  std::vector<UnigramPiece> pieces;
  for (const SentencePieceFile::Piece& piece : file.pieces) pieces.push_back({piece.text, piece.score});
  return pieces;
}

void set_words(bool prepends, Pipeline& pipeline) {
  MetaspaceOptions metaspace;
  metaspace.prepend = prepends ? MetaspaceOptions::Prepend::always : MetaspaceOptions::Prepend::never;
  pipeline.pre_tokenizer =
      pre_tokenizer_sequence({whitespace_split_pre_tokenizer(), metaspace_pre_tokenizer(metaspace)});
  pipeline.decoder = metaspace_decoder(metaspace.replacement, prepends);
}

TokenId require_token(const Pipeline& pipeline, SpecialToken role, const fs::path& path) {
  const auto found = pipeline.roles.find(role);
  if (found == pipeline.roles.end()) throw Error(path, ": has no token that ends or begins a text");
  return found->second;
}

// Raffel et al., 2020. The sentinels follow the pieces in descending order; </s> ends every text.
Pipeline t5(const SentencePieceFile& file, TokenizerSettings& settings, const fs::path& path) {
  Pipeline pipeline;
  std::vector<UnigramPiece> pieces = unigram_pieces(file);
  for (std::int64_t i = settings.extra_ids.value_or(100) - 1; i >= 0; --i)
    pieces.push_back({"<extra_id_" + std::to_string(i) + ">", 0});
  settings.add_sentinels();
  set_unigram(pieces, 2, pipeline);
  if (!file.charsmap.empty()) pipeline.normalizer = precompiled_normalizer(file.charsmap);
  set_words(true, pipeline);
  apply_settings(settings, pipeline);
  const Piece eos = {Piece::Kind::special, 0, {require_token(pipeline, SpecialToken::eos, path)}};
  const Piece first = {Piece::Kind::first_text, 0, {}}, second = {Piece::Kind::second_text, 0, {}};
  pipeline.encoding_template = {{first, eos}, {first, eos, second, eos}};
  return pipeline;
}

// Lan et al., 2020.
Pipeline albert(const SentencePieceFile& file, TokenizerSettings& settings, const fs::path& path) {
  Pipeline pipeline;
  set_unigram(unigram_pieces(file), 1, pipeline);
  std::vector<Normalizer> normalizers{replace_normalizer(TextPattern::literal("``"), "\""),
                                      replace_normalizer(TextPattern::literal("''"), "\"")};
  if (!settings.keep_accents.value_or(false)) {
    normalizers.push_back(normal_form(NormalForm::nfkd));
    normalizers.push_back(strip_accents_normalizer());
  }
  if (settings.do_lower_case.value_or(true)) normalizers.push_back(lowercase_normalizer());
  if (!file.charsmap.empty()) normalizers.push_back(precompiled_normalizer(file.charsmap));
  pipeline.normalizer = normalizer_sequence(std::move(normalizers));
  set_words(settings.add_prefix_space.value_or(true), pipeline);
  apply_settings(settings, pipeline);
  pipeline.encoding_template = bert_template(require_token(pipeline, SpecialToken::cls, path),
                                             require_token(pipeline, SpecialToken::sep, path));
  return pipeline;
}

// The merges of a BPE model: every pair of pieces that forms a piece, ordered by the id of the result, then
// by the length of the left piece.
MergePairs merges_of(const std::vector<VocabularyEntry>& vocabulary) {
  std::unordered_map<std::string_view, TokenId> ids;
  for (const VocabularyEntry& entry : vocabulary) ids[entry.text] = entry.id;
  MergePairs merges;
  for (const VocabularyEntry& entry : vocabulary) {
    const std::string_view text = entry.text;
    if (ids[text] != entry.id) continue;
    std::size_t at = 0;
    while (at < text.size()) {
      next_code_point(text, at);
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
  BpeOptions options;
  const bool is_gemma = settings.tokenizer_class == "GemmaTokenizer";
  if (is_gemma) options.unk_token = settings.roles.at(SpecialToken::unk).content;
  options.fuse_unk = true;
  options.byte_fallback = true;
  pipeline.model = std::make_shared<BpeModel>(pipeline.vocabulary, merges_of(pipeline.vocabulary), options);
  apply_settings(settings, pipeline);
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
    pipeline = name == "T5Tokenizer"       ? t5(file, settings, path)
               : name == "AlbertTokenizer" ? albert(file, settings, path)
                                           : bpe(file, settings, path);
  } catch (const Error& error) {
    const std::string message = error.what();
    throw Error(message.find(path.string()) == message.npos ? path.string() + ": " : "", message);
  }
  pipeline.kind = "sentencepiece";
  const std::string file_name = path.filename().string();
  return std::make_unique<PipelineTokenizer>(std::move(pipeline),
                                             tokenizer_files(settings, path.parent_path(), {file_name}));
}

}  // namespace zoo
