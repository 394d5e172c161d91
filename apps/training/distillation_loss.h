#pragma once

/// @file
/// Use:
///
///     zoo::DistillationLoss distillation({.temperature = 2}, [&](const zoo::ModelInputs& inputs) {
///       return teacher->forward(inputs).logits;
///     });
///     distillation.forward(student, inputs).loss.backward();

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "apps/training/records/metrics_log.h"
#include "models/model.h"

namespace zoo {

/// The Kullback-Leibler divergence that draws a student's distribution q to its teacher's, p.
enum class Divergence {
  kForwardKl,  ///< sum of p log(p / q): q covers all that p holds possible (Hinton et al., 2015)
  kReverseKl,  ///< sum of q log(q / p): q keeps to the likeliest of p (Gu et al., 2024, MiniLLM)
};

/// In the order of Divergence.
inline const std::vector<std::string> kDivergenceNames{"forward_kl", "reverse_kl"};

/// The loss is (1 - weight) cross-entropy + weight temperature^2 divergence.
struct DistillationOptions {
  Divergence divergence = Divergence::kForwardKl;
  double weight = 0.5;     // in [0, 1]
  double temperature = 1;  // above 0: divides the logits of both; its square keeps the gradients' size
  std::int64_t top_k = 0;  // the teacher's most probable tokens alone, all others as one; 0: each token
  bool operator==(const DistillationOptions&) const = default;
};

/// A teacher's logits [N, V] at the N label_positions of the inputs, on any device and without gradients.
using Teacher = std::function<at::Tensor(const ModelInputs&)>;

/// The K tokens that a teacher holds most probable at each of N positions.
struct TopTokens {
  at::Tensor ids;        // [N, K]
  at::Tensor log_probs;  // [N, K + 1] in float32; the last one of all other tokens together
};

/// Of logits [N, V] that are divided by the temperature; K is less than V.
TopTokens top_tokens(const at::Tensor& logits, double temperature, std::int64_t k);

class TeacherFile;

/// The training loss of a causal language model that also learns a teacher's distribution (Hinton et al.,
/// 2015, "Distilling the knowledge in a neural network", section 2) at the positions with a target.
class DistillationLoss {
 public:
  /// `file` keeps the answers of a teacher of which top_k tokens are learnt; null: none is kept.
  DistillationLoss(const DistillationOptions& options, Teacher teacher,
                   std::shared_ptr<TeacherFile> file = nullptr)
      : options_(options), teacher_(std::move(teacher)), file_(std::move(file)) {}

  /// The student's output, with the logits [N, V] of the positions with a target and the loss of both; in
  /// evaluation mode that of the targets alone, which compares with other runs.
  ModelOutput forward(Model& student, ModelInputs inputs);

  /// "kl": the mean divergence per target, in nats at the temperature, over the passes since the last call.
  std::vector<Score> take_scores();

 private:
  at::Tensor divergence(const at::Tensor& student, const ModelInputs& inputs);

  DistillationOptions options_;
  Teacher teacher_;
  std::shared_ptr<TeacherFile> file_;
  at::Tensor sum_;
  std::int64_t targets_ = 0;
};

}  // namespace zoo
