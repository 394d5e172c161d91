#pragma once

#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

#include "tokenizer/files/tokenizer_settings.h"

namespace zoo {

// Readers of tokenizers without a tokenizer.json. All throw Error naming the file and what was expected.

/// vocab.txt, one token per line: BERT; vocab.json with merges.txt: GPT-2 or RoBERTa. Both are built as in
/// transformers' class that tokenizer_config.json (else config.json) names.
std::unique_ptr<Tokenizer> read_vocab_txt(const std::filesystem::path& path, TokenizerSettings settings);
std::unique_ptr<Tokenizer> read_vocab_json(const std::filesystem::path& path, TokenizerSettings settings);

/// The tokens of a vocab.json and their ids, and the pairs of a merges.txt.
std::vector<VocabularyEntry> read_vocabulary_object(const std::filesystem::path& path);
MergePairs read_merges_txt(const std::filesystem::path& path);

/// A sentencepiece model. T5's, ALBERT's and Llama's run as in transformers, others as in the library.
std::unique_ptr<Tokenizer> read_sentencepiece(const std::filesystem::path& path, TokenizerSettings settings);

/// The sentencepiece model of mBART, mBART-50, PEGASUS or DeBERTa as the class of transformers that
/// settings.tokenizer_class names. The class puts additional tokens before the pieces, which shifts their
/// ids, or after them: mBART's languages, DeBERTa's mask.
std::unique_ptr<Tokenizer> read_shifted_pieces(const std::filesystem::path& path, TokenizerSettings settings);

/// Languages of mBART or, if `has_50`, of mBART-50, in the order of their classes.
std::vector<std::string_view> mbart_languages(bool has_50);

/// The words of a section of tokenizer_classes.txt. Throws Error if there is none.
std::vector<std::string_view> class_words(std::string_view section);

/// Sentencepiece models with the ids of a separate vocab.json: source.spm with target.spm, of Marian;
/// sentencepiece.bpe.model of M2M-100. Other tokenizers of the latter file are refused.
std::unique_ptr<Tokenizer> read_marian(const std::filesystem::path& path, TokenizerSettings settings);
std::unique_ptr<Tokenizer> read_m2m_100(const std::filesystem::path& path, TokenizerSettings settings);

/// The ids of a text that a translator learns to write, of Marian by target.spm. Throws Error for a tokenizer
/// that puts the language of sources around each text: M2M-100's, NLLB's, mBART's.
TokenIds encode_target(const Tokenizer& tokenizer, std::string_view text);

/// The tokenizer inside a GGUF file: byte-level BPE, sentencepiece's BPE ("llama") and unigram ("t5") models,
/// and WordPiece ("bert"). It runs as the equivalent tokenizer.json, which save() writes.
std::unique_ptr<Tokenizer> read_gguf_tokenizer(const std::filesystem::path& path);

/// True if the file is a GGUF file that holds a tokenizer.
bool has_gguf_tokenizer(const std::filesystem::path& path);

}  // namespace zoo
