#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "models/inference/packed_decoder.h"

namespace zoo::inference {

/// The sequences of a PackedDecoder. Each row has a slot of the cache. Rows that diverge (beams, candidates)
/// get a copy of their common positions, preferably in a free slot that already holds most of them.
class PackedSession : public DecodingSession {
 public:
  PackedSession(PackedDecoder& model, std::size_t rows, std::size_t capacity)
      : model_(model),
        capacity_(capacity),
        rows_(rows),
        cache_(model.stack_->cache_shape(
            rows, std::min(capacity, static_cast<std::size_t>(DecodingModel::kFirstCapacity)))) {
    for (std::size_t i = 0; i < rows; ++i) rows_[i] = {.slot = i, .source = i};
    written_.resize(rows);
  }

  /// Encodes one source per row.
  void read_sources(const std::vector<TokenIds>& sources);

  at::Tensor read(const std::vector<TokenIds>& tokens, Logits wanted) override;
  void select(const std::vector<std::int64_t>& rows) override;
  void add_row() override;
  void rewind(std::int64_t row, std::int64_t length) override {
    auto& own = rows_.at(static_cast<std::size_t>(row));
    own.length = std::min(own.length, static_cast<std::size_t>(length));
    if (!cache_.serves(own.slot, own.length)) own.length = 0;
  }
  std::int64_t rows() const override { return static_cast<std::int64_t>(rows_.size()); }
  std::int64_t length(std::int64_t row) const override {
    return static_cast<std::int64_t>(rows_.at(static_cast<std::size_t>(row)).length);
  }

 private:
  struct Row {
    std::size_t slot = 0, source = 0, length = 0;
  };
  // Tokens of one row in a pass.
  struct Piece {
    std::size_t row, first, count;
  };

  std::vector<std::vector<Piece>> passes(const std::vector<TokenIds>& tokens) const;
  void note_written(const Row& row, std::size_t count);
  std::size_t alike(std::size_t slot, std::size_t other, std::size_t length) const;
  std::size_t free_slot_for(const Row& row, const std::vector<bool>& taken) const;
  std::vector<bool> taken_slots() const;
  void resize_cache(std::size_t slots, std::size_t capacity);

  PackedDecoder& model_;
  std::size_t capacity_;
  std::vector<Row> rows_;
  PackedCache cache_, memory_;
  std::vector<std::size_t> memory_lengths_;
  // Per slot and position, a number of its last write: slots with the same number hold the same keys and
  // values.
  std::vector<std::vector<std::uint64_t>> written_;
  std::uint64_t writings_ = 0;
  Memory x_, hidden_;
  at::Tensor logits_;  // reused if the shape is the same
};

}  // namespace zoo::inference
