#include "data/chats/tool_calls.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace teratron {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr const char *kFunction = "function", *kArguments = "arguments";

// Object with a call's name and arguments.
template <class Json>
Json& function_of(Json& call) {
  return call.contains(kFunction) ? call[kFunction] : call;
}

// Arguments as an object. Discarded: they are none.
OrderedJson object_arguments(const OrderedJson& function) {
  if (!function.contains(kArguments) || function[kArguments].is_null()) return OrderedJson::object();
  const OrderedJson& given = function[kArguments];
  if (!given.is_string()) return given.is_object() ? given : OrderedJson(OrderedJson::value_t::discarded);
  const auto& text = given.get_ref<const std::string&>();
  if (text.empty()) return OrderedJson::object();
  OrderedJson read = OrderedJson::parse(text, nullptr, /*allow_exceptions=*/false);
  return read.is_object() ? read : OrderedJson(OrderedJson::value_t::discarded);
}

}  // namespace

OrderedJson read_object_list(const OrderedJson& value, const std::string& name) {
  if (value.is_null() || value == "") return nullptr;
  OrderedJson list =
      value.is_string() ? OrderedJson::parse(value.get_ref<const std::string&>(), nullptr, false) : value;
  const bool are_objects =
      list.is_array() && std::ranges::all_of(list, [](const OrderedJson& one) { return one.is_object(); });
  if (!are_objects) throw_user_error("{} is no list of objects", name);
  return list.empty() ? OrderedJson() : list;
}

OrderedJson read_tool_calls(const OrderedJson& value, const std::string& name) {
  OrderedJson calls = read_object_list(value, name);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const OrderedJson& function = function_of(std::as_const(calls[i]));
    if (!function.is_object() || !function.value("name", OrderedJson()).is_string()) {
      throw_user_error("{}[{}] has no name of a function", name, i);
    }
    if (object_arguments(function).is_discarded()) {
      throw_user_error("{}[{}] has arguments that are neither an object nor the JSON text of one", name, i);
    }
  }
  return calls;
}

OrderedJson with_object_arguments(OrderedJson calls) {
  for (OrderedJson& call : calls) {
    OrderedJson& function = function_of(call);
    OrderedJson arguments = function.is_object() ? object_arguments(function) : OrderedJson();
    if (arguments.is_object()) function[kArguments] = std::move(arguments);
  }
  return calls;
}

}  // namespace teratron
