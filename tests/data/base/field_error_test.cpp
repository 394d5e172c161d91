#include "data/base/field_error.h"

#include "tests/support/catch.h"

namespace {

const zoo::FieldError kError(zoo::Field{"cache"}, " int8: ", zoo::Field{"weights"},
                             " modules has no other cache");

}  // namespace

TEST_CASE("a FieldError is about its first field and writes each as its reader knows it") {
  CHECK(kError.field() == "cache");
  CHECK(kError.what() == std::string("'cache' int8: 'weights' modules has no other cache"));
  const auto flag = [](const std::string& field) { return "--" + field; };
  CHECK(kError.message(flag) == "--cache int8: --weights modules has no other cache");
  const zoo::FieldError late("the text takes ", 60, " tokens, more than ", zoo::Field{"max_new_tokens"});
  CHECK(late.field() == "max_new_tokens");
  CHECK(late.message(flag) == "the text takes 60 tokens, more than --max_new_tokens");
}

TEST_CASE("a FieldError can be copied and quotes texts with control characters as they are") {
  const zoo::FieldError copy = kError;
  CHECK(copy.what() == std::string(kError.what()));
  const zoo::FieldError quoted(zoo::Field{"token"}, " 'a\x01z'");
  CHECK(quoted.what() == std::string("'token' 'a\x01z'"));
}
