#include "tokenizer/sentencepiece/sentencepiece_library.h"

// Sentencepiece has a global variable of this name, an object, and so has LibTorch, an int. A program that
// links both gets one for the two, and where that is LibTorch's, sentencepiece's constructor writes over what
// lies behind it: a mutex, for which TorchScript then waits for ever. This one comes first, and has room for
// either.
alignas(64) extern char FLAGS_minloglevel[1024];  // NOLINT
alignas(64) char FLAGS_minloglevel[1024];         // NOLINT

// Exported by the library, though its headers do not show it.
namespace sentencepiece::logging {
void SetMinLogLevel(int level);
}

namespace zoo {

void silence_sentencepiece() {
  constexpr int kFatal = 3;
  sentencepiece::logging::SetMinLogLevel(kFatal);
}

std::string cause_of(const sentencepiece::util::Status& status) {
  // "src/trainer_interface.cc(661) [condition] Vocabulary size too high …"
  const std::string message = status.message() == nullptr ? "" : status.message();
  const std::size_t condition = message.rfind("] ");
  const std::string cause = condition == std::string::npos ? message : message.substr(condition + 2);
  return cause.empty() ? message : cause;
}

}  // namespace zoo
