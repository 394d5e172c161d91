#pragma once

#include <string>
#include <string_view>

namespace zoo {

/// The King James text as the `bible` program of Debian's bible-kjv package prints it, laid out by
/// lay_out_kjv. Throws Error that says how to install the package if the program or its data is missing.
std::string extract_kjv();

/// From `bible`'s pretty printing to plain reading text: a chapter is its heading ("Genesis 1"), an empty
/// line, one line a verse without its number, and an empty line before the next chapter. Exposed for the
/// tests.
std::string lay_out_kjv(std::string_view printed);

/// Every tenth chapter, Genesis 10 the first, is held out.
enum class ChapterSet { kTraining, kHeldOut };

/// The verses of lay_out_kjv's text as a table to classify: a line "text\tlabel", then each verse with the
/// group of books that it stands in: law (Genesis to Deuteronomy), history (to Esther), poetry (to the Song
/// of Solomon), prophets (to Malachi), gospels, acts, letters (Romans to Jude), revelation.
std::string label_kjv(std::string_view text, ChapterSet set);

}  // namespace zoo
