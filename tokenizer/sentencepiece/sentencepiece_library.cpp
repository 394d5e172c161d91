#include "tokenizer/sentencepiece/sentencepiece_library.h"

#include "data/base/error.h"

// Sentencepiece and LibTorch both have a global variable of this name: an object in the former, an int in the
// latter. A program that links both gets one of them. If that is LibTorch's int, sentencepiece's constructor
// overwrites the bytes after it: a mutex, on which TorchScript then waits for ever. This definition is linked
// first and is large enough for both.
alignas(64) extern char FLAGS_minloglevel[1024];  // NOLINT
alignas(64) char FLAGS_minloglevel[1024];         // NOLINT

// The library exports this function, but no header declares it.
namespace sentencepiece::logging {
void SetMinLogLevel(int level);
}

namespace zoo {

void silence_sentencepiece() {
  constexpr int kFatal = 3;
  sentencepiece::logging::SetMinLogLevel(kFatal);
}

void require_ok(const sentencepiece::util::Status& status, std::string_view what) {
  if (status.ok()) return;
  // "src/trainer_interface.cc(661) [condition] Vocabulary size too high …"
  const std::string message = status.message() == nullptr ? "" : status.message();
  const std::size_t condition = message.rfind("] ");
  const std::string cause = condition == std::string::npos ? message : message.substr(condition + 2);
  throw Error(what, ": ", cause.empty() ? message : cause);
}

}  // namespace zoo
