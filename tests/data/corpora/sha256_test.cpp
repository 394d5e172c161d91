#include "data/corpora/sha256.h"

#include "tests/support/catch.h"

TEST_CASE("sha256 gives the digests of FIPS 180's examples") {
  CHECK(zoo::sha256("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(zoo::sha256("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(zoo::sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(zoo::sha256(std::string(1000000, 'a')) ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("git_hash gives the names of git hash-object") {
  CHECK(zoo::git_hash("") == "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
  CHECK(zoo::git_hash("abc") == "f2ba8f84ab5c1bce84a7b441cb1959cfc7093b7f");
}
