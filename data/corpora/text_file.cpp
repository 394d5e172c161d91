#include "data/corpora/text_file.h"

#include <string_view>

#include "data/base/error.h"
#include "data/base/mapped_file.h"
#include "tokenizer/text/utf8.h"

namespace zoo {

std::string read_text(const std::filesystem::path& path) {
  const MappedFile file(path);
  std::string_view text(reinterpret_cast<const char*>(file.data()), file.bytes().size());
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) {
    throw Error(path, ": expected UTF-8, found UTF-16; convert it with: iconv -f UTF-16 -t UTF-8");
  }
  require_utf8(text, path.string());
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  if (text.empty()) throw Error(path, ": expected text, the file is empty");
  return std::string(text);
}

}  // namespace zoo
