#pragma once

#include <filesystem>

#include "tokenizer/files/tokenizer_settings.h"

namespace zoo {

/// Replaces the parts of a tokenizer.json that the class of transformers replaces: BERT's normalizer, the
/// prefix space of GPT-2 and RoBERTa, T5's and Llama's spaces. Of the file's normalizer some keep the
/// Precompiled part, `charsmap`. The file's template stays, whatever the settings say about bos and eos.
void apply_class(TokenizerSettings& settings, Normalizer charsmap, Pipeline& pipeline);

/// Replaces a tokenizer.json's template where the class has one of its own, after apply_settings(). `file` is
/// for messages.
void set_class_template(const TokenizerSettings& settings, Pipeline& pipeline,
                        const std::filesystem::path& file);

/// The parts that BertTokenizer builds around a vocabulary.
void set_bert_parts(const TokenizerSettings& settings, Pipeline& pipeline);

/// The pre-tokenizer and decoder that LlamaTokenizer builds from add_prefix_space and legacy.
void set_llama_spaces(const TokenizerSettings& settings, Pipeline& pipeline);

}  // namespace zoo
