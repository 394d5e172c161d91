#pragma once

#include <string_view>

namespace zoo {

/// Whether the normalization table of a sentencepiece model stays inside itself, and inside the library's
/// buffers: uint32 size of a double-array trie as darts-clone writes it, the trie, and the replacements that
/// its values point to, each closed by a zero byte. No table at all is sound.
bool is_sound_charsmap(std::string_view map);

}  // namespace zoo
