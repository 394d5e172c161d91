#include "models/layers/config_fields.h"

#include "data/base/lines.h"
#include "tests/models/support.h"
#include "tests/support/catch.h"

using namespace zoo;

TEST_CASE("a plain transformer of any size has no feature that packed weights could lack") {
  TransformerConfig config = test::small_config();
  config.num_kv_heads = 1;
  config.dropout = 0.1;
  config.qkv_bias = false;
  CHECK(missing_features(config).empty());
}

TEST_CASE("features that packed weights do not compute are missing, with their values") {
  TransformerConfig config = test::small_config();
  config.position = PositionKind::kRotary;
  config.rope_theta = 100.0;
  config.rope_scaling = {.kind = RopeScalingKind::kDynamic, .factor = 2.0};
  config.norm_placement = NormPlacement::kSandwich;
  config.attention_softcap = 2.5;
  CHECK(missing_features(config) == std::vector<std::string>{"rope_scaling = dynamic"});
  config.rope_scaling = {.kind = RopeScalingKind::kLongRope, .short_factors = {1, 1}, .long_factors = {2, 2}};
  CHECK(missing_features(config).empty());
  config.position = PositionKind::kShaw;
  config.attention = AttentionKind::kStridedSparse;
  config.sparse_window = 3;
  config.rope_scaling = {};
  const std::string sparse = "position = shaw, attention = strided_sparse, sparse_window = 3";
  CHECK(joined(missing_features(config)) == sparse);
}

TEST_CASE("a value that no table names is a feature that packed weights lack") {
  TransformerConfig config = test::small_config();
  config.norm_placement = static_cast<NormPlacement>(17);
  CHECK(missing_features(config) == std::vector<std::string>{"norm_placement = ?"});
}
