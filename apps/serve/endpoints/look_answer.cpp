#include <ATen/ops/_unique.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <nlohmann/json.hpp>

#include "apps/answers/answers.h"
#include "apps/serve/endpoints/look_parts.h"
#include "data/base/base64.h"
#include "models/analysis/logit_lens.h"
#include "models/analysis/logit_target.h"
#include "models/tasks/answer.h"
#include "models/tasks/look_texts.h"

namespace zoo {
namespace {

using nlohmann::ordered_json;

constexpr std::int64_t kNamed = 200;

// Spans of the second text: the sum of the logits of first and last token, as answers are scored.
LookAnswer span_answer(const LookPlace& place, const ModelOutput& output) {
  const Encoding& encoding = place.read.encoding;
  require_offsets(encoding);
  const at::Tensor start = output.start_logits[0].to(at::kFloat).cpu(),
                   end = output.end_logits[0].to(at::kFloat).cpu();
  const auto longest = static_cast<std::size_t>(AnswerRules().max_answer_length);
  std::vector<ByteRange> ranges;
  std::vector<float> logits;
  for (std::size_t i = 0; i < encoding.size(); ++i) {
    for (std::size_t j = i; j < std::min(encoding.size(), i + longest); ++j) {
      if (encoding.texts[i] != 1 || encoding.texts[j] != 1) continue;
      ranges.push_back({encoding.offsets[i].begin, encoding.offsets[j].end});
      logits.push_back(start[static_cast<std::int64_t>(i)].item<float>() +
                       end[static_cast<std::int64_t>(j)].item<float>());
    }
  }
  const auto name = [ranges, text = *place.texts.text_pair](std::int64_t id) {
    const ByteRange range = ranges[static_cast<std::size_t>(id)];
    return text.substr(range.begin, range.end - range.begin);
  };
  return {.kind = "span", .logits = at::tensor(logits), .name = name};
}

bool has_distribution(const TextModel& model, const at::Tensor& logits) {
  if (!logits.defined() || model.model->parts().head.is_flag) return false;
  const ProblemType problem = model.model->config().problem_type;
  return logits.dim() == 3 ||
         (logits.size(1) > 1 && problem != ProblemType::kRegression && problem != ProblemType::kMultiLabel);
}

std::string rest_of(const at::Tensor& logits, const at::Tensor& named) {
  at::Tensor others = at::ones({logits.size(0)}, at::kBool);
  others.index_fill_(0, named, 0);
  return base64_of(logits.masked_select(others));
}

at::Tensor best(const LookAnswer& answer) {
  return std::get<1>(answer.logits.topk(std::min(kNamed, answer.logits.size(0))));
}

}  // namespace

std::string base64_of(const at::Tensor& numbers) {
  const at::Tensor whole = numbers.cpu().contiguous();
  return encode_base64({static_cast<const char*>(whole.const_data_ptr()), whole.nbytes()});
}

std::optional<LookAnswer> look_answer(const TextModel& model, const LookPlace& place,
                                      const ModelOutput& output) {
  if (output.start_logits.defined() && place.texts.text_pair) return span_answer(place, output);
  if (!has_distribution(model, output.logits)) return std::nullopt;
  const analysis::LogitTarget target{.position = output.logits.size(1) == 1 ? -1 : place.position};
  LookAnswer answer{.kind = "token",
                    .logits = analysis::target_logits(*model.model, output, target).cpu().contiguous(),
                    .name = place.token_name};
  if (!gives_labels(model)) return answer;
  answer.kind = "label";
  answer.name = [&model](std::int64_t id) { return answer_numbered(model, id).name; };
  return answer;
}

ordered_json json_of(const LookAnswer& answer, const std::optional<LookAnswer>& plain) {
  at::Tensor ids = best(answer);
  if (plain) {
    ids = std::get<0>(at::_unique(at::cat({ids, best(*plain)})));
    ids = ids.index_select(0, answer.logits.index_select(0, ids).argsort(0, /*descending=*/true));
  }
  ordered_json json{{"kind", answer.kind}, {"count", answer.logits.size(0)}};
  json["ids"] = std::vector<std::int64_t>(ids.const_data_ptr<std::int64_t>(),
                                          ids.const_data_ptr<std::int64_t>() + ids.numel());
  json["names"] = ordered_json::array();
  for (const auto& id : json["ids"]) json["names"].push_back(answer.name(id.get<std::int64_t>()));
  json["logits"] = json_numbers(answer.logits.index_select(0, ids));
  json["rest"] = rest_of(answer.logits, ids);
  if (!plain) return json;
  json["plain"] = {{"logits", json_numbers(plain->logits.index_select(0, ids))},
                   {"rest", rest_of(plain->logits, ids)}};
  json["divergence"] =
      analysis::divergence(at::log_softmax(plain->logits, -1), at::log_softmax(answer.logits, -1))
          .item<double>();
  return json;
}

}  // namespace zoo
