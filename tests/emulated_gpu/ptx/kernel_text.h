// The kernels of a file of PTX as text, and what the file says of them outside their bodies.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace teratron::emulated::ptx {

struct SharedVariable {
  std::size_t bytes = 0, alignment = 1;
  bool is_dynamic = false;  // its size is the launch's
};

struct KernelText {
  std::string file, name;                                     // mangled
  std::string parameters, directives, body;                   // what stands in ( ), before the { and within { }
  int line = 0;                                               // of the body's begin
  std::map<std::string, SharedVariable, std::less<>> shared;  // of the file
};

constexpr std::string_view kBlanks = " \t\r\n";
std::string_view trimmed(std::string_view text);  // without blanks around it

// Statements of PTX begin where the last one ended, by ; or : or a brace.
struct Statement {
  int line = 0;
  std::string_view text;  // without its end
  bool is_label = false;
};
std::vector<Statement> statements_of(std::string_view body, int first_line);

// The name, size and alignment of a .shared or .param declaration: ".shared .align 16 .b8 name[36624]".
struct Declaration {
  std::string name;
  std::size_t bytes = 0, alignment = 1;
  bool has_size = true;  // not []
};
Declaration declaration_of(std::string_view text);

// Bytes of ".b64", ".f16"; 0 if it is no type. A predicate has 4, as a register.
std::size_t bytes_of_type(std::string_view type);

std::vector<KernelText> kernels_of(std::string_view text, const std::string& file);

// Compilers name unnamed namespaces differently; without that part, nvcc's and g++'s names of a kernel are equal.
std::string common_name(std::string_view mangled);
std::string demangled(const std::string& name);

}  // namespace teratron::emulated::ptx
