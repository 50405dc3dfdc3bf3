// Faults of values that a user gave, as data. A fault names its options, so that a command line can add where their
// values came from (options/reading.h).
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace teratron {

// Name of an option without its dashes. Formats as in messages: "--hidden-size".
struct Flag {
  std::string_view name;
};

}  // namespace teratron

template <>
struct fmt::formatter<teratron::Flag> : fmt::formatter<std::string_view> {
  template <class Context>
  auto format(teratron::Flag flag, Context& context) const {
    return fmt::format_to(context.out(), "--{}", flag.name);
  }
};

namespace teratron {

struct Fault {
  std::vector<std::string> flags;  // without the dashes
  std::string text;                // one line

  // Makes a fault of a text. Its flags are the arguments of type Flag and the flags of arguments of type Fault:
  //   Fault::of("{} {} is below {} {}", Flag{"lr"}, lr, Flag{"min-lr"}, minimum);
  template <class... Args>
  static Fault of(fmt::format_string<Args...> format, const Args&... args) {
    Fault fault{.flags = {}, .text = fmt::vformat(format, fmt::make_format_args(args...))};
    (fault.take_flags(args), ...);
    return fault;
  }

  template <class Arg>
  void take_flags(const Arg& arg) {
    if constexpr (std::is_same_v<Arg, Flag>) flags.emplace_back(arg.name);
    if constexpr (std::is_same_v<Arg, Fault>) flags.insert(flags.end(), arg.flags.begin(), arg.flags.end());
  }
};

}  // namespace teratron

template <>
struct fmt::formatter<teratron::Fault> : fmt::formatter<std::string_view> {
  template <class Context>
  auto format(const teratron::Fault& fault, Context& context) const {
    return fmt::formatter<std::string_view>::format(fault.text, context);
  }
};

namespace teratron {

class Faults {
 public:
  template <class... Args>
  void add(fmt::format_string<Args...> format, const Args&... args) {
    add(Fault::of(format, args...));
  }
  template <class... Args>
  void add_if(bool wrong, fmt::format_string<Args...> format, const Args&... args) {
    if (wrong) add(format, args...);
  }
  void add(Fault fault) { list_.push_back(std::move(fault)); }
  void add(const Faults& others) { list_.insert(list_.end(), others.list_.begin(), others.list_.end()); }

  // Adds a fault where the value of a flag is out of its range.
  void need_between(Flag flag, std::int64_t value, std::int64_t least,
                    std::int64_t most = std::numeric_limits<std::int64_t>::max()) {
    add_if(value < least, "{} is {}; it must be at least {}", flag, value, least);
    add_if(value > most, "{} is {}; it must be at most {}", flag, value, most);
  }

  bool empty() const { return list_.empty(); }
  std::size_t size() const { return list_.size(); }
  auto begin() const { return list_.begin(); }
  auto end() const { return list_.end(); }
  std::vector<std::string> texts() const {
    std::vector<std::string> texts;
    for (const Fault& fault : list_) texts.push_back(fault.text);
    return texts;
  }

 private:
  std::vector<Fault> list_;
};

}  // namespace teratron
