#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace zoo::chat {

/// An error during rendering. ChatTemplate adds the line and throws Error.
class Fault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Counts one more while it lives.
class Nesting {
 public:
  explicit Nesting(int& depth) : depth_(++depth) {}
  ~Nesting() { --depth_; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;

 private:
  int& depth_;
};

struct List;
struct Dict;
struct Namespace;
struct Loop;
struct Method;
struct Macro;

/// jinja2's default Undefined: prints nothing, is false, and has no attribute.
struct Undefined {
  std::string what = "the value";  // named when it is used
};
struct None {};
/// A function of the environment, such as raise_exception.
struct Function {
  std::string_view name;
};

using Text = std::shared_ptr<const std::string>;
/// markupsafe's Markup, of the filter `safe`: `+` and its methods escape the plain texts that they add.
struct SafeText {
  Text text;
};

/// A Python value in a template. Texts, lists and mappings are immutable, so copies share them.
using Value =
    std::variant<Undefined, None, bool, std::int64_t, double, Text, std::shared_ptr<const List>,
                 std::shared_ptr<const Dict>, std::shared_ptr<Namespace>, std::shared_ptr<const Loop>,
                 std::shared_ptr<const Method>, const Macro*, Function, SafeText>;

/// Python's list, tuple and range; a dict's items(); the result of map, without a length and items.
enum class ListKind { list, tuple, range, view, generator };

struct List {
  std::vector<Value> items;
  ListKind kind = ListKind::list;
  int depth = 1;
  mutable bool is_used = false;  // an exhausted generator
};

/// In the order of insertion.
struct Dict {
  std::vector<std::pair<Value, Value>> entries;
  int depth = 1;

  const Value* find(std::string_view key, class Heap& heap) const;
  const Value* find_key(const Value& key, class Heap& heap) const;
  /// Equal keys are one: 1, 1.0 and True. Throws Fault for a key that is no text, number or none.
  void set(const Value& key, Value value, class Heap& heap);
};

/// Names and their values: namespace(), and the variables of a frame.
struct Namespace {
  std::vector<std::pair<std::string, Value>> entries;

  const Value* find(std::string_view name) const;
  void set(const std::string& name, Value value);
};

/// The variable `loop`.
struct Loop {
  std::shared_ptr<const List> items;
  std::size_t index = 0;
};

/// A method of a value before its call.
struct Method {
  Value object;
  std::string_view name;
};

/// Makes values and bounds the cost of all operations: a unit is a byte that is read or written, a step the
/// remaining cost of evaluating an expression.
class Heap {
 public:
  /// Throws Fault if the template has used up its budget.
  void spend(std::size_t units);
  void step() { spend(kStep); }
  /// Counts an operation that reads the value, if it is a text. Callers count the items of a list.
  void read(const Value& value);

  Value text(std::string text);
  Value list(std::vector<Value> items, ListKind kind = ListKind::list);
  Value dict(Dict dict);
  Value from_json(const nlohmann::ordered_json& json);

 private:
  static constexpr std::size_t kStep = 64, kBudget = std::size_t{1} << 28;
  // Bytes of a text besides its letters: the object and its allocation.
  static constexpr std::size_t kText = 96;
  std::size_t spent_ = 0;
};

template <class Kind> const Kind* as(const Value& value) { return std::get_if<Kind>(&value); }
/// A text, marked safe or not.
inline const std::string* text_in(const Value& value) {
  if (const auto* safe = as<SafeText>(value)) return safe->text.get();
  const auto* text = as<Text>(value);
  return text == nullptr ? nullptr : text->get();
}
inline const List* list_in(const Value& value) {
  const auto* list = as<std::shared_ptr<const List>>(value);
  return list == nullptr ? nullptr : list->get();
}
inline const Dict* dict_in(const Value& value) {
  const auto* dict = as<std::shared_ptr<const Dict>>(value);
  return dict == nullptr ? nullptr : dict->get();
}
inline bool is_undefined(const Value& value) { return as<Undefined>(value) != nullptr; }

/// The result with its texts marked safe, if the original is.
Value marked_like(const Value& original, Value result, Heap& heap);

/// The type, for messages.
std::string type_name(const Value& value);
bool is_true(const Value& value);
/// True for booleans, integers and floats; is_integral() for the first two.
bool is_number(const Value& value);
bool is_integral(const Value& value);
double number_of(const Value& value);
bool equal(const Value& a, const Value& b, Heap& heap);
/// Negative, 0 or positive. Throws Fault if Python does not order the two.
int compare(const Value& a, const Value& b, Heap& heap);
/// The integer in a number or boolean. Throws Fault "WHAT is …".
std::int64_t integer_of(const Value& value, std::string_view what);
/// Throws Fault "WHAT is …" for anything but a text.
const std::string& text_of(const Value& value, std::string_view what);

/// len(). Throws Fault for a value without a length.
std::size_t length(const Value& value);
/// The items that a loop visits: of a list, the characters of a text, the keys of a mapping.
std::vector<Value> items_of(const Value& value, Heap& heap);
/// `value in container`.
bool contains(const Value& container, const Value& value, Heap& heap);
/// `object.name`, and `object[key]`; Undefined if it has none. Throws Fault for an attribute of Undefined.
Value attribute(const Value& object, const std::string& name, Heap& heap);
Value item(const Value& object, const Value& key, Heap& heap);
/// `object[from:to:step]`; None for an omitted bound.
Value slice(const Value& object, const Value& from, const Value& to, const Value& step, Heap& heap);
/// The operators + - * / // % **.
Value arithmetic(std::string_view operation, const Value& a, const Value& b, Heap& heap);

}  // namespace zoo::chat
