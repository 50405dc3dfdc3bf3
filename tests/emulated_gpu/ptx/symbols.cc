#include "emulated_gpu/ptx/symbols.h"

#include <elf.h>
#include <link.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <unordered_map>
#include <vector>

namespace teratron::emulated::ptx {
namespace {

template <class T>
std::vector<T> table_at(const std::vector<char>& file, std::size_t offset, std::size_t bytes) {
  std::vector<T> table(bytes / sizeof(T));
  if (offset + bytes <= file.size()) std::memcpy(table.data(), file.data() + offset, table.size() * sizeof(T));
  return table;
}

// Where the program was loaded.
std::uintptr_t base_address() {
  std::uintptr_t base = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* result) {
        *static_cast<std::uintptr_t*>(result) = info->dlpi_addr;
        return 1;  // the first one is the program
      },
      &base);
  return base;
}

std::unordered_map<std::uintptr_t, std::string> functions_of_this_program() {
  std::ifstream in("/proc/self/exe", std::ios::binary);
  const std::vector<char> file((std::istreambuf_iterator<char>(in)), {});
  const auto header = table_at<Elf64_Ehdr>(file, 0, sizeof(Elf64_Ehdr)).at(0);
  const auto sections = table_at<Elf64_Shdr>(file, header.e_shoff, header.e_shnum * sizeof(Elf64_Shdr));
  const std::uintptr_t base = base_address();
  std::unordered_map<std::uintptr_t, std::string> names;
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_type != SHT_SYMTAB) continue;
    const Elf64_Shdr& strings = sections.at(section.sh_link);
    for (const Elf64_Sym& symbol : table_at<Elf64_Sym>(file, section.sh_offset, section.sh_size)) {
      if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_value == 0) continue;
      names[base + symbol.st_value] = file.data() + strings.sh_offset + symbol.st_name;
    }
  }
  return names;
}

}  // namespace

std::string symbol_at(const void* function) {
  static const auto names = functions_of_this_program();
  const auto found = names.find(reinterpret_cast<std::uintptr_t>(function));
  return found == names.end() ? std::string() : found->second;
}

}  // namespace teratron::emulated::ptx
