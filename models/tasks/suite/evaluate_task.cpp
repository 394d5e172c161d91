#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include <ATen/ops/tensor.h>
#include <c10/core/InferenceMode.h>
#include <nlohmann/json.hpp>

#include "data/base/error.h"
#include "data/base/sizes.h"
#include "models/generation/decoding_batch.h"
#include "models/generation/token_loop.h"
#include "models/tasks/generate_session.h"
#include "models/tasks/suite/suite.h"
#include "tokenizer/jinja/python_text.h"

namespace zoo {
namespace {

// Tokens whose last `scored`, fewer than all, are scored given those before them.
struct ScoredTokens {
  TokenIds ids;
  std::size_t scored = 0;
};

// Texts to tokens as lm-evaluation-harness' `hf` backend has them. Throws Error where no token is left to
// score, or more than the model sees.
struct SuiteEncoder {
  explicit SuiteEncoder(const GenerateSession& session) : tokenizer(*session.tokenizer) {
    const auto bos = tokenizer.special_id(SpecialToken::bos), id = bos ? bos : tokenizer.eos_id();
    if (id) first = {*id};
    const nlohmann::json &all = *session.checkpoint.json, config = all.value("text_config", all);
    if (const auto limit = tokenizer.limits().max_length) max_length = static_cast<std::int64_t>(*limit);
    if (session.checkpoint.config.takes_positions()) max_length = session.checkpoint.config.max_length();
    for (const char* key : {"n_ctx", "max_position_embeddings", "n_positions"})
      if (const auto found = config.find(key); found != config.end() && found->is_number_integer())
        max_length = found->get<std::int64_t>();
  }

  // With special tokens, unless the text begins with the first of them.
  TokenIds encode(const std::string& text) const {
    const bool begun = !first.empty() && text.starts_with(tokenizer.decode_with_special_tokens(first));
    return tokenizer.encode(text, EncodeOptions{.add_special_tokens = !begun, .with_offsets = false}).ids;
  }

  // The tokens after as many as the context has by itself, without the white space at its end.
  ScoredTokens pair(const std::string& context, const std::string& continuation) const {
    TokenIds ids = context.empty() ? first : encode(chat::stripped(context, chat::Side::right));
    if (ids.empty()) throw Error("the context has no token that the continuation could follow");
    TokenIds all = context.empty() ? tokenizer.encode(continuation) : encode(context + continuation);
    if (context.empty() && (all.empty() || all[0] != ids[0])) all.insert(all.begin(), ids[0]);
    const std::int64_t scored = std::ssize(all) - std::ssize(ids), beyond = std::ssize(all) - max_length - 1;
    if (scored < 1) throw Error("the continuation adds no token to its context");
    if (scored > max_length) throw Error(scored, " tokens exceed the model's context of ", max_length);
    ids.insert(ids.end(), all.end() - scored, all.end());
    if (beyond > 0) ids.erase(ids.begin(), ids.begin() + beyond);
    return {std::move(ids), static_cast<std::size_t>(scored)};
  }

  // Windows that score each token of the text once, with as many before it as fit.
  std::vector<ScoredTokens> windows(const std::string& text) const {
    if (first.empty())
      throw Error("the tokenizer has neither a bos nor an eos token, before which no text begins");
    TokenIds ids = encode(text);
    ids.insert(ids.begin(), first[0]);
    std::vector<ScoredTokens> windows;
    for (std::int64_t done = 1, end = 1; done < std::ssize(ids); done = end) {
      end = std::min<std::int64_t>(std::ssize(ids), done + max_length);
      const std::int64_t begin = std::max<std::int64_t>(0, end - max_length - 1);
      windows.push_back({{ids.begin() + begin, ids.begin() + end}, static_cast<std::size_t>(end - done)});
    }
    return windows;
  }

  const Tokenizer& tokenizer;
  TokenIds first;  // bos or eos, which stands for an empty context; none if the tokenizer has neither
  std::int64_t max_length = 2048;  // tokens that the model sees; the harness' default
};

// Scores at least one token of each row, for the row's answer; equal contexts and long shared beginnings are
// read once.
void add_likelihoods(DecodingModel& model, const std::vector<ScoredTokens>& rows,
                     const std::vector<SuiteAnswer*>& answers) {
  const c10::InferenceMode inference;
  std::vector<TokenIds> contexts, unread;
  std::size_t most = 0;
  for (const ScoredTokens& row : rows) {
    contexts.emplace_back(row.ids.begin(), row.ids.end() - static_cast<std::ptrdiff_t>(row.scored));
    most = std::max(most, row.scored);
  }
  DecodingBatch batch(model, contexts, {.max_new_tokens = static_cast<std::int64_t>(most)});
  batch.next_logits();
  DecodingSession& session = batch.session();
  // A context's last token predicts the first scored one, and is read again with these.
  for (std::int64_t row = 0; row < session.rows(); ++row) {
    session.rewind(row, std::ssize(contexts[row]) - 1);
    unread.emplace_back(rows[row].ids.begin() + session.length(row), rows[row].ids.end() - 1);
  }
  const at::Tensor logits = session.read(unread, DecodingSession::Logits::kAll);
  for (std::int64_t row = 0; row < session.rows(); ++row) {
    const std::int64_t end = std::ssize(unread[row]),
                       begin = end - static_cast<std::int64_t>(rows[row].scored);
    const at::Tensor own = log_probabilities_of(logits[row].slice(0, begin, end)).cpu();
    const at::Tensor ids = at::tensor(rows[row].ids, at::kLong).slice(0, begin - end);
    answers[row]->log_probabilities.push_back(own.gather(1, ids.unsqueeze(1)).sum().item<double>());
    answers[row]->greedy.push_back(own.argmax(1).equal(ids));
  }
}

// Bounds of a batch: tokens of its KV cache, and numbers of its logits.
constexpr std::size_t kTokens = 8192, kLogits = std::size_t{1} << 25;

// A question's tokens; of one whose answer is written, the prompt.
std::vector<ScoredTokens> rows_of(const SuiteTask& task, const SuiteQuestion& question,
                                  const SuiteEncoder& encoder) {
  if (task.output_type == "loglikelihood_rolling") return encoder.windows(question.continuations[0]);
  std::vector<ScoredTokens> rows;
  if (task.output_type == "generate_until") {
    TokenIds ids = encoder.encode(question.contexts[0]);
    const std::int64_t room = encoder.max_length - task.max_gen_toks;
    if (room < 1) throw Error("max_gen_toks leaves no room in the model's context of ", encoder.max_length);
    if (std::ssize(ids) > room) ids.erase(ids.begin(), ids.end() - room);
    return {{std::move(ids)}};
  }
  for (std::size_t i = 0; i < question.contexts.size(); ++i)
    rows.push_back(encoder.pair(question.contexts[i], question.continuations[i]));
  return rows;
}

// Greedy decoding with generation_config.json's rules, as generate() of transformers.
struct Writer {
  Writer(const SuiteTask& task, const GenerateSession& given, const GenerationSettings& settings)
      : session(given), options(settings.generation_options()) {
    std::vector<std::string> ends = task.until;
    if (const auto eos = session.tokenizer->eos_id()) {
      ends.push_back(session.tokenizer->decode_with_special_tokens(TokenIds{*eos}));
      session.defaults.eos_token_ids.push_back(*eos);
    }
    session.stop = StopStrings(std::move(ends));
    options.max_new_tokens = task.max_gen_toks;
    options.beams.num_return_sequences = 1;
    complete(options, session);
  }
  GenerateSession session;
  GenerationOptions options;
};

// The number of parts between runs of white space, empty ones included.
double count_words(const std::string& text) {
  double count = 1;
  for (std::size_t at = 0, spaces = 0; at < text.size();) {
    spaces = chat::is_python_space(next_code_point(text, at)) ? spaces + 1 : 0;
    count += spaces == 1 ? 1 : 0;
  }
  return count;
}

// The choice with the largest log-probability, divided by the length that the metric counts.
std::size_t best(const SuiteQuestion& question, const SuiteAnswer& answer, const std::string& metric) {
  std::vector<double> scores = answer.log_probabilities;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (metric == "acc_norm") scores[i] /= static_cast<double>(count_characters(question.choices[i]));
    if (metric == "acc_bytes") scores[i] /= static_cast<double>(question.choices[i].size());
  }
  return static_cast<std::size_t>(std::ranges::max_element(scores) - scores.begin());
}

// A metric's value, and its weight in the mean.
std::pair<double, double> value_of(std::size_t number, const SuiteTask& task, const SuiteQuestion& question,
                                   const SuiteAnswer& answer) {
  const std::string& metric = task.metrics[number];
  const std::vector<double>& known = answer.log_probabilities;
  const std::string& text = question.continuations[0];
  if (task.output_type == "generate_until")
    return {task.rules[number].match(answer.text, question.targets), 1};
  if (metric == "exact_match") return {answer.greedy[question.right], 1};
  if (task.output_type == "multiple_choice") return {best(question, answer, metric) == question.right, 1};
  if (task.output_type == "loglikelihood") return {metric == "acc" ? double(answer.greedy[0]) : known[0], 1};
  return {std::reduce(known.begin(), known.end()),
          metric == "word_perplexity" ? count_words(text) : static_cast<double>(text.size())};
}

SuiteScore score_of(const std::string& metric, std::size_t number, const std::vector<SuiteAnswer>& answers) {
  double sum = 0, weights = 0, squares = 0;
  for (const SuiteAnswer& answer : answers) {
    sum += answer.values[number].first;
    weights += answer.values[number].second;
  }
  const double mean = sum / weights, count = static_cast<double>(answers.size());
  if (metric == "bits_per_byte") return {metric, -mean / std::log(2), {}};
  if (metric.ends_with("perplexity")) return {metric, std::exp(-mean), {}};
  for (const SuiteAnswer& answer : answers) squares += std::pow(answer.values[number].first - mean, 2);
  return {metric, mean, count > 1 ? std::optional(std::sqrt(squares / (count - 1) / count)) : std::nullopt};
}

using QuestionRows = std::vector<std::vector<ScoredTokens>>;

// The questions of a batch, in the order of `left`, which it takes them from.
std::vector<std::size_t> next_batch(std::span<const std::size_t>& left, const QuestionRows& rows,
                                    std::size_t vocabulary) {
  std::size_t count = 0, longest = 0, scored = 0, questions = 0;
  for (const std::size_t i : left) {
    count += rows[i].size();
    for (const ScoredTokens& row : rows[i])
      longest = std::max(longest, row.ids.size()), scored = std::max(scored, row.scored);
    if (questions > 0 && (count * longest > kTokens || count * scored * vocabulary > kLogits)) break;
    ++questions;
  }
  const std::vector<std::size_t> batch(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(questions));
  left = left.subspan(questions);
  return batch;
}

void answer_batch(const std::vector<std::size_t>& batch, const QuestionRows& rows, DecodingModel& model,
                  const Writer& writer, bool writes, std::vector<SuiteAnswer>& answers) {
  std::vector<ScoredTokens> together;
  std::vector<SuiteAnswer*> owners;
  for (const std::size_t i : batch) {
    together.insert(together.end(), rows[i].begin(), rows[i].end());
    owners.insert(owners.end(), rows[i].size(), &answers[i]);
  }
  if (together.empty()) return;
  if (!writes) return add_likelihoods(model, together, owners);
  std::vector<TokenIds> prompts;
  for (const ScoredTokens& row : together) prompts.push_back(row.ids);
  const GenerationResult written = generate(model, prompts, writer.options);
  for (std::size_t row = 0; row < owners.size(); ++row)
    owners[row]->text = text_of_row(written.ids[row], writer.session);
}

}  // namespace

SuiteResult evaluate_task(const SuiteTask& task, DecodingModel& model, const GenerateSession& session,
                          const GenerationSettings& settings, const std::function<void(std::int64_t)>& done) {
  if (session.has_encoder())
    throw Error(session.checkpoint.directory, ": expected a decoder, not an encoder-decoder");
  const SuiteEncoder encoder(session);
  const Writer writer(task, session, settings);
  QuestionRows rows;
  for (const SuiteQuestion& question : task.questions) try {
      rows.push_back(rows_of(task, question, encoder));
    } catch (const Error& error) {
      throw Error(task.name, ", question ", rows.size() + 1, ": ", error.what());
    }
  std::vector<std::size_t> order = indices_below(rows.size());
  // The longest first: there is little padding.
  std::ranges::stable_sort(order, std::greater<>(),
                           [&](std::size_t i) { return rows[i].empty() ? 0 : rows[i][0].ids.size(); });
  SuiteResult result{.scores = {}, .answers = std::vector<SuiteAnswer>(rows.size())};
  for (std::span<const std::size_t> left = order; !left.empty(); done(std::ssize(rows) - std::ssize(left)))
    answer_batch(next_batch(left, rows, static_cast<std::size_t>(model.config().vocab_size)), rows, model,
                 writer, task.output_type == "generate_until", result.answers);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    SuiteAnswer& answer = result.answers[i];
    if (task.output_type == "multiple_choice") answer.chosen = best(task.questions[i], answer, "acc");
    for (std::size_t metric = 0; metric < task.metrics.size(); ++metric) try {
        answer.values.push_back(value_of(metric, task, task.questions[i], answer));
      } catch (const Error& error) {
        throw Error(task.name, ", question ", i + 1, ": ", error.what());
      }
  }
  for (const std::string& metric : task.metrics)
    result.scores.push_back(score_of(metric, result.scores.size(), result.answers));
  return result;
}

}  // namespace zoo
