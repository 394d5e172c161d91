#include "models/layers/features.h"

#include <array>

#include "data/base/lines.h"
#include "tests/models/support.h"
#include "tests/support/catch.h"

using namespace zoo;

namespace {

constexpr std::array<std::string_view, 3> kKnown{"position = rotary", "rope_theta", "activation"};

}  // namespace

TEST_CASE("a plain transformer of any size has no feature that an engine could lack") {
  TransformerConfig config = test::small_config();
  config.num_kv_heads = 1;
  config.dropout = 0.1;
  config.qkv_bias = false;
  CHECK(missing_features(config, {}).empty());
}

TEST_CASE("features that an engine does not name are missing, with their values") {
  TransformerConfig config = test::small_config();
  config.position = PositionKind::kRotary;
  config.rope_theta = 100.0;
  config.activation = Activation::kSilu;
  CHECK(missing_features(config, kKnown).empty());
  config.position = PositionKind::kAlibi;
  config.norm_placement = NormPlacement::kSandwich;
  config.attention_softcap = 2.5;
  CHECK(joined(missing_features(config, kKnown)) ==
        "norm_placement = sandwich, position = alibi, attention_softcap = 2.5");
}
