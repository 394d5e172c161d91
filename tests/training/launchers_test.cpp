#include "apps/training/parallel/launchers.h"

#include "tests/support/catch.h"

TEST_CASE("the first host of a list of Slurm") {
  CHECK(zoo::first_host("") == "");
  CHECK(zoo::first_host("gpu3") == "gpu3");
  CHECK(zoo::first_host("gpu3,gpu1") == "gpu3");
  CHECK(zoo::first_host("node[07-09,12],gpu[1-2]") == "node07");
  CHECK(zoo::first_host("node[3,5-6]-ib") == "node3-ib");
  CHECK(zoo::first_host("rack[1-2]-node[04-08]") == "rack1-node04");
  CHECK(zoo::first_host("cut[12") == "cut12");
}
