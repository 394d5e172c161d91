#pragma once

#include <string>
#include <string_view>

namespace zoo {

/// The name of a class of transformers without a final "Fast", "" for "". Aliases get the name of the
/// original: BartTokenizer is RobertaTokenizer.
std::string canonical_class(std::string name);

/// The class with which AutoTokenizer.from_pretrained of transformers 5 opens a directory; "" if it keeps the
/// pipeline of tokenizer.json as it is (TokenizersBackend). By its source, transformers/models/auto/
/// tokenization_auto.py, where each model type has a registered class or none:
///
/// - A `named` class is used if the registered one is the same, an alias or absent.
/// - If a type's registered class is TokenizersBackend, a named class is ignored.
/// - Some types, such as qwen2, always use the registered class: hub files often name a wrong one.
/// - LlamaTokenizer, which splits words at spaces, is not used if tokenizer.json has a ByteLevel part.
/// - Without a named class, the registered one is used.
///
/// `model_type` is config.json's, "" if there is none. `named` is the tokenizer_class of
/// tokenizer_config.json, else of config.json, by canonical_class(); "" if neither has one.
std::string chosen_class(std::string_view model_type, const std::string& named, bool is_byte_level);

}  // namespace zoo
