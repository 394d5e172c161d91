#include "apps/serve/shared_passes.h"

#include <c10/util/ScopeExit.h>

namespace zoo {
namespace {

// Tokens up to which a pass takes texts: more makes it longer, so that all who wait wait longer, and hardly
// more efficient.
constexpr std::size_t kSharedTokens = 2048;

}  // namespace

// A client that leaves may have texts in a pass that another request runs: the pass owns them, too.
struct SharedPasses::Request {
  TextPass pass;
  std::vector<Encoding> texts;
  std::vector<std::size_t> order;   // longest first
  std::size_t done = 0;             // of `order`; changes on the compute thread alone
  std::vector<at::Tensor> results;  // written before `done` counts them
};

std::vector<at::Tensor> SharedPasses::run(ComputeJob& job, const TextPass& pass,
                                          const std::vector<Encoding>& texts) {
  auto request = std::make_shared<Request>(Request{pass, texts, by_length(texts), 0, {}});
  request->results.resize(texts.size());
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(request);
  }
  const auto forgets = c10::make_scope_exit([&] {
    const std::lock_guard lock(mutex_);
    std::erase(waiting_, request);
  });
  while (!is_done(*request)) job.run([&] { pass_of(request); });
  return std::move(request->results);
}

bool SharedPasses::is_done(const Request& request) const {
  const std::lock_guard lock(mutex_);
  return request.done == request.order.size();
}

// The next texts of the request, at least one, then those of others that wait for the same pass, in the order
// of their arrival.
void SharedPasses::pass_of(const std::shared_ptr<Request>& request) {
  struct Part {
    std::shared_ptr<Request> owner;
    std::size_t texts;
  };
  std::vector<Part> parts;
  std::vector<const Encoding*> batch;
  std::size_t tokens = 0;
  const auto take = [&](const std::shared_ptr<Request>& owner) {
    const std::size_t before = batch.size();
    for (std::size_t i = owner->done; i < owner->order.size() && batch.size() < request->pass.most_texts;
         ++i) {
      const Encoding& text = owner->texts[owner->order[i]];
      if (!batch.empty() && tokens + text.size() > kSharedTokens) break;
      tokens += text.size();
      batch.push_back(&text);
    }
    if (batch.size() > before) parts.push_back({owner, batch.size() - before});
  };
  {
    const std::lock_guard lock(mutex_);
    take(request);
    if (batch.empty()) return;  // other requests have taken all of them along
    for (const auto& other : waiting_)
      if (other != request && other->pass.computes_as(request->pass)) take(other);
  }
  std::vector<at::Tensor> rows;
  try {
    rows = request->pass.compute(batch);
  } catch (const std::exception&) {
    if (parts.size() == 1) throw;
    parts.resize(1);  // the fault may be of another's text
    batch.resize(parts[0].texts);
    rows = request->pass.compute(batch);
  }
  ++count_;
  const std::lock_guard lock(mutex_);
  auto row = rows.begin();
  for (const Part& part : parts) {
    Request& owner = *part.owner;
    for (std::size_t i = 0; i < part.texts; ++i) owner.results[owner.order[owner.done++]] = *row++;
  }
}

}  // namespace zoo
