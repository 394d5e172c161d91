// main() of every test program.
#define CATCH_CONFIG_RUNNER
#include "tests/support/catch.h"

int main(int argc, char** argv) {
  Catch::Session session;
  session.configData().filenamesAsTags = true;  // "[#weights_test]" are the tests of weights_test.cpp
  return session.run(argc, argv);
}
