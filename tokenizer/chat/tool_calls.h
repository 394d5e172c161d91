#pragma once

/// @file
/// Use:
///
///     const auto format = zoo::ToolCallFormat::find(chat, /*ends=*/{"<|im_end|>"});
///     const zoo::Tool weather{"weather", std::make_shared<nlohmann::ordered_json>(schema)};
///     const zoo::PatternPtr pattern = zoo::tool_call_pattern(format, {weather}, /*many=*/true);
///     zoo::ToolCallReader reader(format);
///     for (const zoo::ToolCallPiece& piece : reader.push(text)) std::cout << piece.text;

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "tokenizer/chat/chat_format.h"
#include "tokenizer/constraint/pattern.h"
#include "tokenizer/constraint/stop_strings.h"

namespace zoo {

/// How a chat template writes the assistant's calls of tools. Nothing is known of templates: conversations
/// with known calls are rendered, and the texts around names and arguments are taken from the result.
struct ToolCallFormat {
  static constexpr char kId = '\1';  // in `between` and `end`: an id of nine letters and digits

  std::string begin;    // before the first name, such as "<tool_call>\n{\"name\": \""
  std::string middle;   // between a name and its arguments, a JSON object
  std::string between;  // from the arguments to the next name; empty: the template writes one call
  std::string end;      // after the last arguments, without the end of the turn
  bool arguments_are_text = false;  // the template wants them as JSON text, not as an object
  bool begins_answer = false;       // a request allows calls only there

  /// `ends`: the texts of end tokens. Throws Error saying what keeps the calls from being recognised.
  static ToolCallFormat find(const ChatFormat& format, const std::vector<std::string>& ends);

  /// The text that shows that a call begins: `begin` up to its JSON; all of it if it is JSON from the start,
  /// which is a call only where it begins an answer.
  std::string trigger() const { return marker().empty() ? begin : marker(); }
  bool only_first() const { return begins_answer || marker().empty(); }

 private:
  std::string marker() const;
};

struct Tool {
  std::string name;
  std::shared_ptr<const nlohmann::ordered_json> parameters;  // JSON Schema of an object
};

/// The texts that call one of the tools, or with `many` one after another, each with arguments that its
/// schema allows. Throws Error naming the tool and the keyword that a pattern cannot express.
PatternPtr tool_call_pattern(const ToolCallFormat& format, const std::vector<Tool>& tools, bool many);

/// A part of an answer: text, the name of the next call, or some of its arguments.
struct ToolCallPiece {
  enum class Kind { kText, kName, kArguments };
  Kind kind = Kind::kText;
  std::size_t call = 0;  // counted from 0
  std::string text;
};

/// Finds the calls in an answer as it is written. A marker that no call follows is text.
class ToolCallReader {
 public:
  explicit ToolCallReader(ToolCallFormat format) : format_(std::move(format)), marker_({format_.trigger()}) {}

  std::vector<ToolCallPiece> push(std::string_view text);
  /// What was held back because a call could have begun in it.
  std::vector<ToolCallPiece> finish();
  /// Whether there is a call, and the last one's arguments are all there.
  bool has_called() const { return calls_ > 0 && place_ != Place::kArguments; }

 private:
  enum class Place { kText, kBegin, kName, kArguments, kAfter, kDone };

  bool step(std::vector<ToolCallPiece>& pieces);
  bool read_text(std::vector<ToolCallPiece>& pieces);
  bool read_name(std::vector<ToolCallPiece>& pieces);
  bool read_arguments(std::vector<ToolCallPiece>& pieces);
  bool read_after();

  ToolCallFormat format_;
  StopStrings marker_;
  std::string held_;
  Place place_ = Place::kText;
  bool has_text_ = false;
  std::size_t calls_ = 0;
  std::int64_t depth_ = 0;  // of brackets in arguments
  bool in_string_ = false, escaped_ = false;
};

}  // namespace zoo
