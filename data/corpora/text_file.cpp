#include "data/corpora/text_file.h"

#include "data/base/error.h"
#include "tokenizer/text/utf8.h"

namespace zoo {

TextFile::TextFile(const std::filesystem::path& path, Utf8Check check)
    : file_(path), text_(reinterpret_cast<const char*>(file_.data()), file_.bytes().size()) {
  if (text_.starts_with("\xFF\xFE") || text_.starts_with("\xFE\xFF"))
    throw Error(path, ": expected UTF-8, found UTF-16; convert it with: iconv -f UTF-16 -t UTF-8");
  if (check == Utf8Check::whole) require_utf8(text_, path.string());
  if (text_.starts_with("\xEF\xBB\xBF")) text_.remove_prefix(3);
  if (text_.empty()) throw Error(path, ": expected text, the file is empty");
}

std::string read_text(const std::filesystem::path& path) { return std::string(TextFile(path).text()); }

}  // namespace zoo
