#include "data/chats/tool_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "base/json_fields.h"
#include "data/text/json_scanner.h"

namespace teratron {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr const char *kFunction = "function", *kArguments = "arguments";

// Object with a call's name and arguments.
template <class Json>
Json& function_of(Json& call) {
  return call.contains(kFunction) ? call[kFunction] : call;
}

// Arguments as an object, or what else they are. UserError: a text that parse_in_order() refuses.
OrderedJson plain_arguments(const OrderedJson& function, const std::string& name) {
  const OrderedJson given = function.value(kArguments, OrderedJson());
  if (given.is_null() || given == "") return OrderedJson::object();
  return given.is_string() ? parse_in_order(given.get_ref<const std::string&>(), name) : given;
}

}  // namespace

OrderedJson parse_in_order(std::string_view text, const std::string& name) {
  constexpr std::size_t kMostMembers = 500, kMostLevels = 100;
  std::array<std::size_t, kMostLevels + 1> members{};
  const auto count = [&](int depth, OrderedJson::parse_event_t event, const OrderedJson&) {
    const auto level = static_cast<std::size_t>(depth);
    if (level >= kMostLevels) throw_user_error("{} nests values more than {} deep", name, kMostLevels);
    if (event == OrderedJson::parse_event_t::object_start) members[level + 1] = 0;
    if (event == OrderedJson::parse_event_t::key && ++members[level] > kMostMembers) {
      throw_user_error("{} has an object of more than {} members", name, kMostMembers);
    }
    return true;
  };
  OrderedJson value = parse_fitted<OrderedJson>(text, count);
  if (value.is_discarded() || !is_json(text)) throw_user_error("{} is not valid JSON", name);
  return value;
}

OrderedJson read_object_list(const OrderedJson& value, const std::string& name) {
  if (value.is_null() || value == "") return nullptr;
  OrderedJson list = value.is_string() ? parse_in_order(value.get_ref<const std::string&>(), name) : value;
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
    if (!plain_arguments(function, fmt::format("{}[{}].{}", name, i, kArguments)).is_object()) {
      throw_user_error("{}[{}] has arguments that are neither an object nor the JSON text of one", name, i);
    }
  }
  return calls;
}

OrderedJson with_object_arguments(OrderedJson calls) {
  for (OrderedJson& call : calls) {
    OrderedJson& function = function_of(call);
    if (function.is_object()) function[kArguments] = plain_arguments(function, kArguments);
  }
  return calls;
}

}  // namespace teratron
