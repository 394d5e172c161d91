#include "tokenizer/constraint/expression_dialect.h"

#include <initializer_list>

#include "tokenizer/text/character_set.h"

namespace zoo {
namespace {

using Ranges = Pattern::Ranges;

// The characters of some general categories, and `more`.
Ranges categories(std::initializer_list<const char*> names, Ranges more) {
  for (const char* name : names) {
    const icu::UnicodeSet set = *characters_of_property(name);
    for (std::int32_t i = 0; i < set.getRangeCount(); ++i)
      more.emplace_back(static_cast<char32_t>(set.getRangeStart(i)),
                        static_cast<char32_t>(set.getRangeEnd(i)));
  }
  return more;
}

}  // namespace

const Ranges& digits_of(ExpressionDialect dialect) {
  static const Ranges python = categories({"Nd"}, {}), ascii{{'0', '9'}};
  return dialect == ExpressionDialect::kPython ? python : ascii;
}

const Ranges& words_of(ExpressionDialect dialect) {
  static const Ranges python = categories({"L", "N"}, {{'_', '_'}}),
                      ascii{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
  return dialect == ExpressionDialect::kPython ? python : ascii;
}

const Ranges& spaces_of(ExpressionDialect dialect) {
  static const Ranges python{{'\t', '\r'},     {0x1C, ' '},      {0x85, 0x85},     {0xA0, 0xA0},
                             {0x1680, 0x1680}, {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F},
                             {0x205F, 0x205F}, {0x3000, 0x3000}},
      ecma_script{{'\t', '\r'},     {' ', ' '},       {0xA0, 0xA0},     {0x1680, 0x1680}, {0x2000, 0x200A},
                  {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
  return dialect == ExpressionDialect::kPython ? python : ecma_script;
}

const Ranges& line_ends_of(ExpressionDialect dialect) {
  static const Ranges python{{'\n', '\n'}}, ecma_script{{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};
  return dialect == ExpressionDialect::kPython ? python : ecma_script;
}

}  // namespace zoo
