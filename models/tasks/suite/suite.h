#pragma once

/// @file
/// Use:
///
///     const zoo::SuiteTask task = zoo::read_suite_task("piqa.json", keys, {});
///     const zoo::SuiteResult result = zoo::evaluate_task(task, *model, session, settings, [](auto) {});
///     std::cout << result.scores[0].metric << " " << result.scores[0].value << "\n";

#include <functional>
#include <optional>

#include <nlohmann/json_fwd.hpp>

#include "models/tasks/generate_session.h"
#include "models/tasks/generation_settings.h"
#include "models/tasks/suite/match_rules.h"

namespace zoo {

struct SuiteQuestion {
  std::vector<std::string> contexts, continuations;  // pairs; multiple choice has one for each choice
  std::vector<std::string> choices;                  // of multiple choice: acc_norm divides by their lengths
  std::size_t right = 0;                             // index of the right choice
  std::vector<std::string> targets;                  // generate_until: each is a right answer
};

/// A task by the words of lm-evaluation-harness.
struct SuiteTask {
  std::string name, output_type;
  std::vector<std::string> metrics, until;
  std::vector<MatchRules> rules;  // generate_until: one for each metric
  std::int64_t max_gen_toks = 256;
  std::vector<SuiteQuestion> questions;
};

/// Overrides of a task's file: number of questions, and of examples before each unless the file says 0.
struct SuiteOptions {
  std::optional<std::int64_t> limit, num_fewshot;
};

/// The task of a file of the harness with these keys, and the questions of its data, JSON lines in the
/// working directory or beside it. The prompts are the harness', examples by its samplers included. Throws
/// Error naming file and key for what the zoo does not support, and the question that a template or a label
/// does not fit.
SuiteTask read_suite_task(const std::filesystem::path& file, const nlohmann::ordered_json& keys,
                          const SuiteOptions& options);

struct SuiteAnswer {
  std::vector<double> log_probabilities;          // of each continuation, in nats
  std::vector<bool> greedy;                       // each of its tokens is the most probable one
  std::size_t chosen = 0;                         // the most probable choice
  std::string text;                               // generate_until
  std::vector<std::pair<double, double>> values;  // of the task's metrics, with their weights in the mean
};

struct SuiteScore {
  std::string metric;
  double value = 0;
  std::optional<double> error;  // the standard error of a mean
};

struct SuiteResult {
  std::vector<SuiteScore> scores;
  std::vector<SuiteAnswer> answers;
};

/// Answers the questions as the harness' `hf` backend does in float32; what contexts share is read once.
/// `done` hears how many are answered. Throws Error naming the question that has no answer.
SuiteResult evaluate_task(const SuiteTask& task, DecodingModel& model, const GenerateSession& session,
                          const GenerationSettings& settings, const std::function<void(std::int64_t)>& done);

}  // namespace zoo
