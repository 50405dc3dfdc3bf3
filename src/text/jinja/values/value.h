// Values of templates: Python's, as far as Jinja's templates have them. All but namespaces and iterators are immutable,
// as in Jinja's immutable sandbox, so copies share what they hold.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "jinja/error.h"
#include "jinja/values/text.h"

namespace teratron::jinja {

class Value;
struct Loop;
using Values = std::vector<Value>;

// Arguments of a call.
struct Arguments {
  Values positional;
  std::vector<std::pair<std::string, Value>> named;
};
using Function = std::function<Value(Arguments&)>;

// Most bytes of a text, and most elements of a list. A template that doubles a value again and again ends here.
constexpr std::size_t kMostBytes = std::size_t{1} << 26, kMostElements = std::size_t{1} << 18;

// Appends to a text that is being made. Error, before memory is taken: the text would have more than kMostBytes.
void append(std::string& text, std::string_view more);
// Error: more elements than a list may have.
void require_elements(std::size_t count);

// Size of a value with all that it holds. It is bounded, since values are compared, written and freed by recursion.
struct Extent {
  int levels = 0;          // of values within each other
  std::size_t values = 1;  // each as often as it occurs
};
// Error: the value cannot be a key of a dictionary, being a list, a dictionary or a tuple with one.
void require_hashable(const Value& value);
// Extent of a value that holds these. Error: it exceeds the bounds.
Extent extent_around(const Values& items);

// An unknown name or a missing attribute: empty when written, an error when computed with.
struct Undefined {
  std::shared_ptr<const std::string> why;
};
struct None {};
struct Sequence {
  enum class Kind { kList, kTuple, kRange, kView, kIterator };
  Kind kind = Kind::kList;
  Values items;
  std::string name = "list";  // of the type
  Extent extent{};
  mutable std::size_t taken = 0;  // elements of an iterator that are gone
};
struct Dictionary {
  std::vector<std::pair<Value, Value>> items;  // in the order of insertion
  Extent extent{};
  const Value* find(const Value& key) const;  // null: it has none
  const Value* find(std::string_view key) const;
  void set(Value key, Value value);
};
struct Namespace {
  std::map<std::string, Value, std::less<>> attributes;
};
struct Callable {
  std::string name;
  Function call;
  Extent extent{};
};

class Value {
 public:
  using Variant =
      std::variant<Undefined, None, bool, std::int64_t, double, std::shared_ptr<const Text>,
                   std::shared_ptr<const Sequence>, std::shared_ptr<const Dictionary>, std::shared_ptr<Namespace>,
                   std::shared_ptr<const Callable>, std::shared_ptr<const Loop>>;

  Value() = default;  // Undefined
  template <typename T>
  requires std::is_constructible_v<Variant, T> &&(!std::is_pointer_v<std::decay_t<T>>)Value(T held)
      : held_(std::move(held)) {}  // NOLINT(google-explicit-constructor)
  static Value undefined(std::string why) { return Undefined{std::make_shared<const std::string>(std::move(why))}; }
  static Value text(std::string bytes, bool safe = false);
  static Value list(Values items, Sequence::Kind kind = Sequence::Kind::kList, std::string name = "list");
  static Value dictionary(Dictionary made);
  static Value tuple(Values items) { return list(std::move(items), Sequence::Kind::kTuple, "tuple"); }
  // Iterator, which is read once.
  static Value iterator(Values items) { return list(std::move(items), Sequence::Kind::kIterator, "generator"); }
  // `self`: the value whose method it is.
  static Value function(std::string name, Function call, const Value& self = {});

  template <typename T>
  const T* get() const {
    return std::get_if<T>(&held_);
  }
  bool is_undefined() const { return get<Undefined>() != nullptr; }
  bool is_none() const { return get<None>() != nullptr; }
  const Text* text() const { return pointee<Text>(); }
  const Sequence* sequence() const { return pointee<Sequence>(); }
  const Dictionary* dictionary() const { return pointee<Dictionary>(); }
  const Callable* callable() const { return pointee<Callable>(); }
  const Loop* loop() const { return pointee<Loop>(); }
  Namespace* name_space() const;
  // A bool is an integer, too.
  bool is_integer() const { return get<std::int64_t>() != nullptr || get<bool>() != nullptr; }
  std::int64_t integer() const;  // of is_integer()
  bool is_number() const { return is_integer() || get<double>() != nullptr; }
  double number() const;                   // of is_number()
  bool is_same(const Value& other) const;  // `is` of Python
  Extent extent() const;                   // of a namespace, which changes: as if it were empty

 private:
  template <typename T>
  const T* pointee() const {
    const auto* held = get<std::shared_ptr<const T>>();
    return held == nullptr ? nullptr : held->get();
  }
  Variant held_;
};

// Elements that a loop goes through. As in Jinja, each is found and tested on demand: an assignment to a namespace in
// one turn counts for the test of the next.
struct LoopItems {
  std::shared_ptr<const Sequence> source;         // an iterator
  std::function<bool(const Value&)> passes = {};  // empty: all do
  Values found = {};

  bool has(std::size_t index);  // finds elements up to this one
  std::size_t count();          // finds all
};

// Variables of a loop's body.
struct Loop {
  std::shared_ptr<LoopItems> items;
  std::size_t index0 = 0;
  std::shared_ptr<Value> last_changed;  // of loop.changed()
};

// Error: the value is Undefined; the message says why.
void require_defined(const Value& value);
// Error: the value is Undefined, or no function.
const Callable& require_callable(const Value& value);
bool is_true(const Value& value);
bool equal(const Value& a, const Value& b);
// Whether a < b. Error: Python has no order of them.
bool less(const Value& a, const Value& b);
std::string type_name(const Value& value);
// An iterator over a value's elements; an iterator itself. Error: the value has none.
std::shared_ptr<const Sequence> iterator_of(const Value& value);
// The elements of a sequence, keys of a dictionary or characters of a text; Undefined has none. Error: another value.
Values elements(const Value& value);
std::int64_t length(const Value& value);
// Error: a number beyond 64 bits, or elements nested too deep.
Value from_json(const nlohmann::ordered_json& json);

}  // namespace teratron::jinja
