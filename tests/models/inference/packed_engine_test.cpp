#include "models/inference/packed_engine.h"

#include "tests/models/support.h"
#include "tests/support/catch.h"

using namespace zoo;

namespace {

// A row without padding, one padded on the right and one on the left, longer than a window and than a panel.
at::Tensor ragged_mask(std::int64_t length) {
  at::Tensor mask = at::ones({3, length}, at::kLong);
  mask[1].slice(0, length - 5) = 0;
  mask[2].slice(0, 0, 4) = 0;
  return mask;
}

}  // namespace

TEST_CASE("Packed encoders of all families compute what their modules compute") {
  const auto [family, config] = GENERATE(from_range(test::small_encoders()));
  const std::int64_t length = GENERATE(1, 8, 25);
  CAPTURE(family, length);
  const at::NoGradGuard no_grad;
  const at::Tensor mask = length > 8 ? ragged_mask(length) : at::Tensor();
  at::Tensor ids = test::random_ids(config, 3, length, 4);
  ids.masked_fill_(ids.eq(config.pad_token_id), 5);
  if (mask.defined()) ids.masked_fill_(mask.eq(0), config.pad_token_id);
  const ModelInputs inputs{
      .input_ids = ids, .attention_mask = mask.defined() ? mask.ne(0) : at::Tensor(), .label_positions = {}};
  const auto model = test::random_model(family, config, Head::kTokenClassification, 3);
  const at::Tensor expected = model->forward(inputs).logits;
  const at::Tensor found = pack_encoder(model, {})->forward(inputs).logits;
  const at::Tensor kept = (mask.defined() ? mask : at::ones_like(ids)).unsqueeze(-1);
  CHECK(test::relative_error(found * kept, expected * kept) <= 2e-6);
}
