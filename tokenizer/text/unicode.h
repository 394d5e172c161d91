#pragma once

#include <string>
#include <string_view>

#include "tokenizer/text/aligned_text.h"

namespace zoo {

/// Character properties as in Hugging Face's `tokenizers`: the categories of Unicode 8 and the normalization
/// of Unicode 9. Newer characters are unassigned there.
bool is_white_space(char32_t c);
/// Category P and all ASCII punctuation, including "$", "+" and "~".
bool is_punctuation(char32_t c);
/// Control, format and private-use characters, tab and line ends included.
bool is_control(char32_t c);
bool is_nonspacing_mark(char32_t c);  // Mn
bool is_combining_mark(char32_t c);   // Mn, Mc, Me
bool is_numeric(char32_t c);          // N
/// Matches `\w`: letters, marks, decimal digits, connector punctuation, joiners.
bool is_word_character(char32_t c);
/// The first position from `at` on without a white space, and the last one without one before it.
std::size_t skip_spaces(std::string_view text, std::size_t at);
std::size_t skip_spaces_back(std::string_view text, std::size_t at);
/// The blocks that BERT splits into characters (_is_chinese_char).
bool is_cjk_ideograph(char32_t c);

/// The lower case of a single character: U+0130 becomes "i" and U+0307.
std::u32string lowercase(char32_t c);

enum class Decomposition { canonical, compatibility };

/// The full decomposition, as in NFD or NFKD, with marks unsorted; the character itself if it has none.
std::u32string decomposed(char32_t c, Decomposition kind);
/// The canonical combining class, which orders marks.
int combining_class(char32_t c);

/// The end of the grapheme cluster (UAX 29, extended) that begins at text[at].
std::size_t grapheme_end(std::string_view text, std::size_t at);

/// Unicode's normal forms (UAX 15).
enum class NormalForm { nfc, nfd, nfkc, nfkd };

/// Converts a text to a normal form, with the alignment of `tokenizers`.
void to_normal_form(AlignedText& text, NormalForm form);

}  // namespace zoo
