#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>

#include "data/base/error.h"
#include "models/inference/held_slots.h"
#include "models/inference/packed_decoder.h"

namespace zoo::inference {

// The sequences of a PackedDecoder. Each row has a slot of the cache. Rows that diverge (beams, candidates)
// get a copy of their common positions, preferably in a free slot that already holds most of them. A slot
// without a row keeps what it holds, for a later row that begins alike, until another row needs the slot.
class PackedSession : public DecodingSession {
 public:
  PackedSession(PackedDecoder& model, std::size_t rows, std::size_t capacity)
      : model_(model),
        capacity_(capacity),
        rows_(rows),
        held_{.cache = PackedCache(model.stack_->cache_shape(
                  rows, std::min(capacity, static_cast<std::size_t>(DecodingModel::kFirstCapacity))))} {
    for (std::size_t i = 0; i < rows; ++i) rows_[i] = {.slot = i, .source = i};
    held_.tokens.resize(rows);
  }
  ~PackedSession() override {
    if (!keeps_ || is_reading_) return;
    const std::lock_guard turn(model_.turn_);
    model_.kept_ = std::make_shared<HeldSlots>(std::move(held_));
  }

  // Encodes one source per row.
  void read_sources(const std::vector<TokenIds>& sources) {
    const auto width = static_cast<std::size_t>(model_.config_.hidden_size);
    std::size_t longest = 0, total = 0;
    for (const TokenIds& source : sources) {
      longest = std::max(longest, source.size());
      total += source.size();
    }
    Memory hidden(total * width * sizeof(float));
    Pass pass{.x = hidden.as<float>(), .rows = total};
    std::size_t row = 0;
    for (std::size_t i = 0; i < sources.size(); ++i) {
      pass.sequences.push_back({.first_row = row, .count = sources[i].size(), .slot = i, .source = i});
      memory_lengths_.push_back(sources[i].size());
      model_.encoder_embeddings_->embed(sources[i], 0, 0, sources[i].size(), pass.x + row * width);
      row += sources[i].size();
    }
    memory_ = PackedCache(model_.stack_->cache_shape(sources.size(), longest));
    const std::lock_guard turn(model_.turn_);
    model_.encoder_->run(pass, model_.workspace_);
    model_.stack_->append_memory(pass, memory_, model_.workspace_);
  }

  at::Tensor read(const std::vector<TokenIds>& tokens, Logits wanted) override {
    TORCH_CHECK(tokens.size() == rows_.size(), "tokens for ", rows_.size(), " rows were expected, got ",
                tokens.size());
    std::size_t longest = 0, end = 0, last = 0;
    for (std::size_t row = 0; row < tokens.size(); ++row) {
      TORCH_CHECK(!tokens[row].empty(), "row ", row, " was given no token");
      longest = std::max(longest, tokens[row].size());
      if (rows_[row].length + tokens[row].size() > end) last = row;
      end = std::max(end, rows_[row].length + tokens[row].size());
      if (end > capacity_) throw Error("row ", row, " would grow beyond its room for ", capacity_, " tokens");
    }
    const std::size_t held = held_.cache.shape().capacity;
    try {
      if (end > held) resize_cache(held_.cache.shape().slots, std::min(capacity_, std::max(end, 2 * held)));
    } catch (const c10::Error& error) {
      throw RowMemoryError(last, error.what_without_backtrace());
    }
    const auto width = static_cast<std::size_t>(model_.config_.hidden_size);
    const std::size_t places = wanted == Logits::kAll ? longest : 1;
    hidden_.grow_to(rows_.size() * places * width * sizeof(float));
    is_reading_ = true;
    for (const std::vector<Piece>& pieces : passes(tokens)) {
      Pass pass{.cache = &held_.cache, .memory = &memory_, .memory_lengths = &memory_lengths_};
      if (!model_.encoder_) pass.memory_lengths = nullptr;
      for (const Piece& piece : pieces) {
        const Row& row = rows_[piece.row];
        pass.sequences.push_back({pass.rows, piece.count, row.length, row.slot, row.source,
                                  row.length - piece.first + tokens[piece.row].size(), row.adapter});
        pass.rows += piece.count;
        note_written(row, tokens[piece.row], piece);
      }
      x_.grow_to(pass.rows * width * sizeof(float));
      pass.x = x_.as<float>();
      for (std::size_t i = 0; i < pieces.size(); ++i) {
        const auto& [number, first, count] = pieces[i];
        const SequenceRows& rows = pass.sequences[i];
        model_.embeddings_->embed(tokens[number], rows.past - first, first, count,
                                  pass.x + rows.first_row * width);
      }
      {
        const std::lock_guard turn(model_.turn_);
        model_.stack_->run(pass, model_.workspace_);
      }
      for (std::size_t i = 0; i < pieces.size(); ++i) {
        const Piece& piece = pieces[i];
        Row& row = rows_[piece.row];
        row.length += piece.count;
        held_.cache.forget(row.slot, row.length);
        for (std::size_t t = 0; t < piece.count; ++t) {
          const bool last = piece.first + t + 1 == tokens[piece.row].size();
          if (wanted == Logits::kLast && !last) continue;
          const std::size_t place = piece.row * places + (wanted == Logits::kAll ? piece.first + t : 0);
          std::memcpy(hidden_.as<float>() + place * width, pass.x + (pass.sequences[i].first_row + t) * width,
                      width * sizeof(float));
        }
      }
    }
    is_reading_ = false;
    const auto vocabulary = static_cast<std::int64_t>(model_.head_.weight().outputs);
    const auto batch = static_cast<std::int64_t>(rows_.size()), length = static_cast<std::int64_t>(places);
    if (!logits_.defined() || logits_.size(0) != batch || logits_.size(1) != length)
      logits_ = at::empty({batch, length, vocabulary}, at::kFloat);
    const std::size_t count = rows_.size() * places;
    if (model_.config_.output_scale() != 1.0) {
      const auto scale = static_cast<float>(model_.config_.output_scale());
      for (std::size_t i = 0; i < count * width; ++i) hidden_.as<float>()[i] *= scale;
    }
    {
      const std::lock_guard turn(model_.turn_);
      model_.stack_->project_head(hidden_.as<float>(), count, model_.head_, logits_.mutable_data_ptr<float>(),
                                  model_.workspace_);
    }
    const double softcap = model_.config_.logits_softcap;
    if (softcap > 0) logits_.div_(softcap).tanh_().mul_(softcap);
    return wanted == Logits::kAll ? logits_ : logits_.squeeze(1);
  }

  void select(const std::vector<std::int64_t>& rows) override {
    TORCH_CHECK(!rows.empty(), "a session needs at least one row");
    std::vector<Row> chosen = selected(rows_, rows);
    std::vector<bool> taken(held_.cache.shape().slots, false);
    for (const Row& row : chosen) taken[row.slot] = true;
    std::vector<bool> owned(taken.size(), false);
    for (Row& row : chosen) {
      if (!owned[row.slot]) {
        owned[row.slot] = true;
        continue;
      }
      std::size_t slot = free_slot_for(row, taken);
      if (slot == taken.size()) {
        resize_cache(taken.size() + rows.size(), held_.cache.shape().capacity);
        taken.resize(held_.cache.shape().slots, false);
        owned.resize(taken.size(), false);
      }
      copy_slot(row.slot, slot, row.length);
      row.slot = slot;
      taken[slot] = owned[slot] = true;
    }
    rows_ = std::move(chosen);
    drop_oldest();
  }

  void add_row() override {
    if (model_.encoder_) return DecodingSession::add_row();
    const std::size_t oldest = oldest_slot(taken_slots()), slots = held_.cache.shape().slots;
    if (oldest == slots) resize_cache(slots + 1, held_.cache.shape().capacity);
    rows_.push_back({.slot = oldest, .source = oldest});
  }

  void adapt(std::int64_t number, std::size_t adapter) override {
    Row& row = rows_.at(static_cast<std::size_t>(number));
    TORCH_CHECK(row.length == 0, "row ", number, " has read ", row.length, " tokens already");
    if (adapter > model_.adapters_.size()) throw Error("the model has no adapter ", adapter);
    row.adapter = adapter == 0 ? nullptr : model_.adapters_[adapter - 1].get();
  }

  std::int64_t reuse(std::int64_t number, const TokenIds& tokens) override {
    Row& row = rows_.at(static_cast<std::size_t>(number));
    TORCH_CHECK(row.length == 0, "row ", number, " has read ", row.length, " tokens already");
    if (model_.encoder_ || tokens.empty()) return 0;
    std::size_t best = row.slot, most = 0;
    for (std::size_t slot = 0; slot < held_.tokens.size(); ++slot) {
      const std::vector<HeldToken>& held = held_.tokens[slot];
      const std::size_t count = std::min(held.size(), tokens.size() - 1);
      std::size_t common = 0;
      while (common < count && held[common].id == tokens[common] && held[common].adapter == row.adapter)
        ++common;
      if (common > most && held_.cache.serves(slot, common)) {
        best = slot;
        most = common;
      }
    }
    // A slot that no other row has and that loses less than it gives is taken over, otherwise the oldest one.
    std::vector<bool> taken = taken_slots();
    taken[row.slot] = false;
    const bool takes_over = most > 0 && !taken[best] && 2 * most >= held_.tokens[best].size();
    row.slot = row.source = takes_over ? best : oldest_slot(taken);
    const bool has_them = most > 0 && row.slot == best;
    if (!has_them && held_.tokens[row.slot].size() > tokens.size()) drop(row.slot);
    if (!has_them && most > 0) copy_slot(best, row.slot, most);
    row.length = most;
    return static_cast<std::int64_t>(most);
  }

  void hold(std::size_t bytes) override {
    if (model_.encoder_) return;
    most_held_ = bytes / held_.cache.position_bytes();
    const std::size_t more = std::min(kHeldSlots, kHeldShare * *most_held_ / capacity_);
    try {
      resize_cache(rows_.size() + more, held_.cache.shape().capacity);
    } catch (const c10::Error&) {  // no address space for more: the rows' own slots hold what they can
    }
  }

  void keep() override {
    keeps_ = !model_.encoder_;
    const std::lock_guard turn(model_.turn_);
    if (!keeps_ || !model_.kept_) return;
    const std::size_t slots = std::max(held_.cache.shape().slots, model_.kept_->cache.shape().slots);
    held_ = std::move(*model_.kept_);
    model_.kept_.reset();
    if (held_.cache.shape().slots < slots) resize_cache(slots, held_.cache.shape().capacity);
  }

  void save(const Write& write) const override {
    if (!is_reading_) held_.save(write);
  }

  void load(std::span<const std::byte> bytes) override {
    for (std::span<const std::byte> values; !bytes.empty();) {
      const TokenIds ids = held_.next(bytes, values);
      if (ids.size() > capacity_) continue;
      const std::size_t slot = oldest_slot(std::vector<bool>(held_.tokens.size(), false));
      const CacheShape& shape = held_.cache.shape();
      if (ids.size() > shape.capacity)
        resize_cache(shape.slots, std::min(capacity_, std::max(ids.size(), 2 * shape.capacity)));
      drop(slot);
      held_.fill(slot, ids, values);
    }
    drop_oldest();
  }

  void rewind(std::int64_t row, std::int64_t length) override {
    auto& own = rows_.at(static_cast<std::size_t>(row));
    own.length = std::min(own.length, static_cast<std::size_t>(length));
    if (!held_.cache.serves(own.slot, own.length)) own.length = 0;
  }
  std::int64_t rows() const override { return static_cast<std::int64_t>(rows_.size()); }
  std::int64_t length(std::int64_t row) const override {
    return static_cast<std::int64_t>(rows_.at(static_cast<std::size_t>(row)).length);
  }

 private:
  // Maximum rows of a pass: a long prompt is processed in parts, which keeps the buffers small.
  static constexpr std::size_t kRowsAtOnce = 512;
  // Slots for what is held of rows that have left: at most so many, and address space for so many times it.
  static constexpr std::size_t kHeldSlots = 64, kHeldShare = 8;

  struct Row {
    std::size_t slot = 0, source = 0, length = 0;
    const PackedAdapter* adapter = nullptr;
  };
  // Tokens of one row in a pass.
  struct Piece {
    std::size_t row, first, count;
  };

  // Tokens in the order of their rows, split into passes.
  std::vector<std::vector<Piece>> passes(const std::vector<TokenIds>& tokens) const {
    std::vector<std::vector<Piece>> passes(1);
    std::size_t room = kRowsAtOnce;
    for (std::size_t row = 0; row < tokens.size(); ++row) {
      for (std::size_t first = 0; first < tokens[row].size();) {
        if (room == 0) {
          passes.emplace_back();
          room = kRowsAtOnce;
        }
        const std::size_t count = std::min(room, tokens[row].size() - first);
        passes.back().push_back({row, first, count});
        first += count;
        room -= count;
      }
    }
    return passes;
  }

  // Records that a piece of `read` is about to be written after the row's tokens.
  void note_written(const Row& row, const TokenIds& read, const Piece& piece) {
    std::vector<HeldToken>& held = held_.tokens[row.slot];
    held.resize(row.length);
    if (row.length == 0) held_.cache.restart(row.slot);
    for (std::size_t i = 0; i < piece.count; ++i)
      held.push_back({++held_.writings, read[piece.first + i], row.adapter});
  }

  // Free slot that was written least recently; the number of all slots if none is free.
  std::size_t oldest_slot(const std::vector<bool>& taken) const {
    std::size_t oldest = taken.size();
    for (std::size_t slot = 0; slot < taken.size(); ++slot)
      if (!taken[slot] && (oldest == taken.size() || held_.last_writing(slot) < held_.last_writing(oldest)))
        oldest = slot;
    return oldest;
  }

  // Frees the oldest slots without a row until the others hold no more than they may.
  void drop_oldest() {
    if (!most_held_) return;
    std::vector<bool> kept = taken_slots();
    std::size_t held = 0;
    for (std::size_t slot = 0; slot < kept.size(); ++slot) {
      if (held_.tokens[slot].empty()) kept[slot] = true;
      if (!kept[slot]) held += held_.tokens[slot].size();
    }
    const std::size_t rows = std::min(rows_.size(), most_rows_);
    while (held > *most_held_ + (most_rows_ - rows) * capacity_) {
      const std::size_t slot = oldest_slot(kept);
      held -= held_.tokens[slot].size();
      drop(slot);
      kept[slot] = true;
    }
  }

  void drop(std::size_t slot) {
    held_.tokens[slot].clear();
    held_.cache.clear(slot);
  }

  // Gives slot `to` the first `length` tokens of slot `from`.
  void copy_slot(std::size_t from, std::size_t to, std::size_t length) {
    held_.cache.copy(held_.cache, from, to, alike(from, to, length), length);
    const std::vector<HeldToken>& tokens = held_.tokens[from];
    held_.tokens[to].assign(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(length));
  }

  // Number of the first `length` positions that two slots have in common.
  std::size_t alike(std::size_t slot, std::size_t other, std::size_t length) const {
    const auto &a = held_.tokens[slot], &b = held_.tokens[other];
    const std::size_t most = std::min({length, a.size(), b.size()});
    std::size_t common = 0;
    while (common < most && a[common].writing == b[common].writing) ++common;
    return common;
  }

  // Free slot that shares most of the row; the number of all slots if none is free.
  std::size_t free_slot_for(const Row& row, const std::vector<bool>& taken) const {
    std::size_t best = taken.size(), most = 0;
    for (std::size_t slot = 0; slot < taken.size(); ++slot) {
      if (taken[slot]) continue;
      const std::size_t held = alike(row.slot, slot, row.length);
      if (best == taken.size() || held > most ||
          (held == most && held_.last_writing(slot) < held_.last_writing(best))) {
        best = slot;
        most = held;
      }
    }
    return best;
  }

  std::vector<bool> taken_slots() const {
    std::vector<bool> taken(held_.cache.shape().slots, false);
    for (const Row& row : rows_) taken[row.slot] = true;
    return taken;
  }

  // Moves the slots' contents to a larger cache.
  void resize_cache(std::size_t slots, std::size_t capacity) {
    PackedCache larger(model_.stack_->cache_shape(slots, capacity));
    for (std::size_t slot = 0; slot < held_.cache.shape().slots; ++slot)
      larger.copy(held_.cache, slot, slot, 0, held_.tokens[slot].size());
    held_.cache = std::move(larger);
    held_.tokens.resize(held_.cache.shape().slots);
  }

  PackedDecoder& model_;
  std::size_t capacity_;
  std::vector<Row> rows_;
  HeldSlots held_;
  std::size_t most_rows_ = rows_.size();
  std::optional<std::size_t> most_held_;  // tokens of slots without a row, beyond the room of rows that left
  bool keeps_ = false;                    // leaves held_ to the model's next session that keeps
  bool is_reading_ = false;               // also after a read that failed: held_ names tokens that it lacks
  PackedCache memory_;
  std::vector<std::size_t> memory_lengths_;
  Memory x_, hidden_;
  at::Tensor logits_;  // reused if the shape is the same
};

std::unique_ptr<DecodingSession> PackedDecoder::begin(std::int64_t rows, std::int64_t capacity) {
  TORCH_CHECK(!encoder_, "an encoder-decoder begins with what its encoder reads");
  return std::make_unique<PackedSession>(*this, static_cast<std::size_t>(rows),
                                         static_cast<std::size_t>(capacity));
}

std::unique_ptr<DecodingSession> PackedDecoder::begin(const std::vector<TokenIds>& sources,
                                                      std::int64_t capacity) {
  TORCH_CHECK(encoder_, "a decoder has no encoder to read sources");
  auto session = std::make_unique<PackedSession>(*this, sources.size(), static_cast<std::size_t>(capacity));
  session->read_sources(sources);
  return session;
}

}  // namespace zoo::inference
