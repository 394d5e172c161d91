#pragma once

#include <string>
#include <string_view>

namespace zoo {

/// The King James text: the output of the program `bible` from Debian's bible-kjv, formatted by lay_out_kjv.
/// If the program or its data is missing, throws Error with the installation command.
std::string extract_kjv();

/// Turns `bible`'s pretty printing into plain text: for each chapter its heading ("Genesis 1"), an empty
/// line, one line a verse without its number, and an empty line before the next chapter.
std::string lay_out_kjv(std::string_view printed);

/// Every tenth chapter is held out, beginning with Genesis 10.
enum class ChapterSet { kTraining, kHeldOut };

/// A table for classification from lay_out_kjv's text: a line "text\tlabel", then each verse with its group
/// of books: law (Genesis to Deuteronomy), history (to Esther), poetry (to the Song of Solomon), prophets (to
/// Malachi), gospels, acts, letters (Romans to Jude), revelation.
std::string label_kjv(std::string_view text, ChapterSet set);

}  // namespace zoo
