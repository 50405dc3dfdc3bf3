// Tracks open elements by a page's tags: at least as many as a parser of HTML has open.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace teratron {

// Follows the standard's rules by which tags close elements, and closes fewer where the rules depend on more than the
// tags. A parser's depth is thus at most a few times depth(), which bounds its time and memory for each tag.
class OpenElements {
 public:
  void start(const std::string& name);
  void end(const std::string& name);

  std::int64_t depth() const { return static_cast<std::int64_t>(open_.size()); }
  std::int64_t formatting() const { return formatting_; }  // open formatting elements (html_names.h)
  bool has_table() const { return tables_ > 0; }

 private:
  using Groups = std::uint32_t;
  struct Element {
    std::uint32_t name;  // index of the name
    Groups groups;       // one bit for each group
    bool is(Groups some) const { return (groups & some) != 0; }
  };

  Element element_of(std::string_view name);
  void close_those_before(const Element& element);
  void end_innermost(std::uint32_t name, Groups stops);
  void close_cell(std::uint32_t name);
  void close_row();
  void close_from(std::size_t i);
  void erase_at(std::size_t i);
  std::size_t find(std::uint32_t name, Groups stops) const;
  std::size_t find_group(Groups group, Groups stops) const;

  std::vector<Element> open_;
  std::int64_t tables_ = 0, formatting_ = 0;
  std::unordered_map<std::string, Element> known_;
};

}  // namespace teratron
