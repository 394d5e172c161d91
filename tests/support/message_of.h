#pragma once

#include <string>

#include "data/base/error.h"
#include "tests/support/catch.h"

namespace zoo::test {

/// The message of the Error that `action` throws; fails the test if it throws none.
template <class Action> std::string message_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  FAIL("expected an Error");
  return "";
}

}  // namespace zoo::test
