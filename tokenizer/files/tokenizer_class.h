#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "tokenizer/files/tokenizer_settings.h"
#include "tokenizer/pipeline/unigram_model.h"

namespace zoo {

/// Adds special tokens of a class that no file names: T5's sentinels, mBART's and NLLB's languages.
void add_class_tokens(TokenizerSettings& settings);

/// Replaces a tokenizer.json's template if the class has one, after apply_settings(). `file` is for messages.
void set_class_template(const TokenizerSettings& settings, Pipeline& pipeline,
                        const std::filesystem::path& file);

/// A class's name without a final "Fast". Aliases get the original's: BartTokenizer is RobertaTokenizer.
std::string canonical_class(std::string name);

/// The class with which AutoTokenizer.from_pretrained of transformers 5 opens a directory, by its
/// tokenization_auto.py; "" if it keeps the pipeline of tokenizer.json as it is (TokenizersBackend). That is
/// the `named` class, except:
///
/// - If the class registered for the model type is TokenizersBackend, a named class is ignored.
/// - Some types, such as qwen2, always use the registered class: hub files often name a wrong one.
/// - LlamaTokenizer, which splits words at spaces, is not used if tokenizer.json has a ByteLevel part.
/// - Without a named class, the registered one is used.
///
/// `model_type` is config.json's, "" if there is none. `named` is TokenizerSettings::named_class.
std::string chosen_class(std::string_view model_type, const std::string& named, bool is_byte_level);

/// Replaces the parts of a tokenizer.json that transformers' class settings.tokenizer_class builds itself
/// around the file's vocabulary: normalizer, of which some keep the Precompiled part, pre_tokenizer, decoder,
/// the model's options and the added tokens. Returns false, and changes nothing, if there is no such class,
/// or if its model has another type than the file's: BertTokenizer with BPE. `file` is for messages.
bool rebuild_as_class(const TokenizerSettings& settings, const std::filesystem::path& file,
                      nlohmann::json& tokenizer_json);

/// Sets the same parts and the kind of a pipeline without a tokenizer.json, whose `file` has the vocabulary
/// of a class that rebuild_as_class() knows; `charsmap`: its sentencepiece model's.
void set_class_parts(const TokenizerSettings& settings, const std::filesystem::path& file, Pipeline& pipeline,
                     std::string_view charsmap = "");

/// The pipeline of a class that runs a sentencepiece unigram model, whose file has this table.
Pipeline unigram_pipeline(const TokenizerSettings& settings, const std::filesystem::path& file,
                          std::string_view charsmap, const std::vector<UnigramPiece>& pieces, TokenId unk_id);

}  // namespace zoo
