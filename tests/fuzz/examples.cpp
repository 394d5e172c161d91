#include "data/examples/question_file.h"
#include "data/examples/record_file.h"
#include "data/examples/tagged_file.h"
#include "tests/fuzz/fuzz.h"

// A file's name, of which the end counts, then the file.
void zoo::fuzz::read(std::string_view input) {
  const auto parts = parts_of(input, 2);
  const std::string name(parts[0]);
  if (name.starts_with("records"))
    parse_records(parts[1], name, {.required = {"text", "label"}, .optional = {"more"}});
  else if (name.starts_with("tagged")) parse_tagged(parts[1], name);
  else parse_questions(parts[1], name);
}
