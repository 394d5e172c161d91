#pragma once

#include <string>
#include <string_view>

namespace zoo {

/// The class of transformers without a final "Fast", "" for "". Classes that are another's are that one's
/// name: BartTokenizer is RobertaTokenizer.
std::string canonical_class(std::string name);

/// The class with which AutoTokenizer.from_pretrained of transformers 5 opens a directory; "" if it keeps the
/// pipeline of tokenizer.json as it is (TokenizersBackend). By its source, transformers/models/auto/
/// tokenization_auto.py, where each model type has a registered class or none:
///
/// - A `named` class counts, where the registered one is the same, of another name or none.
/// - Where a type's registered class is TokenizersBackend, any class that is named is not used.
/// - Some types, such as qwen2, have the registered class whatever is named: hub files often name a wrong
/// one.
/// - LlamaTokenizer, which cuts words at spaces, is not used beside a tokenizer.json with a ByteLevel part.
/// - Without a named class the registered one counts.
///
/// `model_type` is config.json's, "" if there is none. `named` is the tokenizer_class of
/// tokenizer_config.json, else of config.json, by canonical_class(); "" if neither has one.
std::string chosen_class(std::string_view model_type, const std::string& named, bool is_byte_level);

}  // namespace zoo
