#include "tokenizer/constraint/expression_dialect.h"

#include <initializer_list>

#include "tokenizer/text/character_set.h"

namespace zoo {
namespace {

using Ranges = Pattern::Ranges;

// The characters of some general categories, and `more`: in every Python from 3.9 on, or in any of them.
Ranges categories(std::initializer_list<const char*> names, Ranges more, Extent extent) {
  UErrorCode status = U_ZERO_ERROR;
  static const icu::UnicodeSet known(u"[:age=13.0:]", status);
  for (const char* name : names) {
    icu::UnicodeSet set = *characters_of_property(name);
    if (extent == Extent::kEvery) set.retainAll(known);
    for (std::int32_t i = 0; i < set.getRangeCount(); ++i)
      more.emplace_back(static_cast<char32_t>(set.getRangeStart(i)),
                        static_cast<char32_t>(set.getRangeEnd(i)));
  }
  return more;
}

}  // namespace

const Ranges& digits_of(ExpressionDialect dialect, Extent extent) {
  static const Ranges every = categories({"Nd"}, {}, Extent::kEvery),
                      any = categories({"Nd"}, {}, Extent::kAny), ascii{{'0', '9'}};
  if (dialect == ExpressionDialect::kEcmaScript) return ascii;
  return extent == Extent::kEvery ? every : any;
}

const Ranges& words_of(ExpressionDialect dialect, Extent extent) {
  static const Ranges every = categories({"L", "N"}, {{'_', '_'}}, Extent::kEvery),
                      any = categories({"L", "N"}, {{'_', '_'}}, Extent::kAny),
                      ascii{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
  if (dialect == ExpressionDialect::kEcmaScript) return ascii;
  return extent == Extent::kEvery ? every : any;
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
