#include "apps/serve/server_metrics.h"

#include "tests/support/catch.h"

TEST_CASE("Metrics have all digits of a number, so that large counters do not stand still") {
  zoo::ServerMetrics metrics;
  metrics.answered("/v1/completions", 200, 12345.678901);
  const std::string text = metrics.text({{"tokens_total", "counter", "Tokens.", 1058443}});
  CHECK_THAT(text, Catch::Contains("tokens_total 1058443\n"));
  CHECK_THAT(text, Catch::Contains("seconds_sum{path=\"/v1/completions\"} 12345.678901\n"));
}
