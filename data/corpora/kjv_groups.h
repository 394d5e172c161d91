#pragma once

#include <string>
#include <string_view>

namespace zoo {

/// Every tenth chapter, Genesis 10 the first, is held out.
enum class ChapterSet { kTraining, kHeldOut };

/// The verses of lay_out_kjv's text as a table to classify: a line "text\tlabel", then each verse with the
/// group of books that it stands in: law (Genesis to Deuteronomy), history (to Esther), poetry (to the Song
/// of Solomon), prophets (to Malachi), gospels, acts, letters (Romans to Jude), revelation.
std::string label_kjv(std::string_view text, ChapterSet set);

}  // namespace zoo
