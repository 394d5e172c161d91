#include "models/tasks/answer.h"

#include <algorithm>

#include "data/base/field_error.h"

namespace zoo {
namespace {

// Windows over the context, of tokens of one encoding.
std::vector<Encoding> windows_of(const TextModel& model, const AnswerRequest& asked) {
  if (model.tokenizer->limits().pads_left) {
    throw Error(model.checkpoint.directory,
                ": tokenizer_config.json says padding_side 'left': transformers then puts the context ",
                "before the question, which tzoo does not");
  }
  constexpr std::size_t kUsualLength = 384, kUsualStride = 128;  // of transformers' pipeline
  const std::size_t limit = model.max_length();
  const auto length = static_cast<std::size_t>(asked.max_length.value_or(std::min(limit, kUsualLength)));
  if (length > limit)
    throw FieldError(Field{"max_length"}, ": ", length, " is more than the model's limit of ", limit);
  const auto stride = static_cast<std::size_t>(asked.stride.value_or(std::min(length / 2, kUsualStride)));
  return model.tokenizer->encode_windows(asked.question, asked.context, stride, {.max_length = length});
}

}  // namespace

std::vector<Answer> answer_question(const TextModel& model, const AnswerRequest& asked, const RunPiece& run) {
  AnswerCollector collector(asked.rules, model.tokenizer->special_id(SpecialToken::cls));
  for (const Encoding& window : windows_of(model, asked)) {
    require_offsets(window);
    run([&] {
      const Encoding* const batch[] = {&window};
      const ModelOutput output = model.model->forward(batch_of(model, batch));
      collector.add(window, {output.start_logits[0], output.end_logits[0]});
    });
  }
  return collector.best();
}

}  // namespace zoo
