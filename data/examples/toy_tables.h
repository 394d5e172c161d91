#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace zoo {

/// reviews, names, questions: small worlds of sentences for the tasks that label texts, words and answers;
/// translation, translation-held-out: phrases with their Spanish (translations.h).
const std::vector<std::string>& toy_table_names();

/// `count` examples as tzoo train reads them: lines of text and label; words with their labels, an empty line
/// behind each sentence; lines of question, context and answer; of source and target. An example is a pure
/// function of (name, seed, its number). `name` is one of toy_table_names().
std::string make_toy_table(const std::string& name, std::int64_t count, std::uint64_t seed);

}  // namespace zoo
