// Stands for extract/ and langid/ in builds with -DTERATRON_TEXT_TOOLS=OFF.
#include "base/error.h"
#include "corpus/extract/extract_stage.h"
#include "corpus/langid/langid_stage.h"

namespace teratron {
namespace {

[[noreturn]] void throw_not_built(const char* stage) {
  throw_environment_error(
      "'data {}' is not in this program, which was built without text tools; build it by 'scripts/setup build release "
      "teratron' (CMake: -DTERATRON_TEXT_TOOLS=ON)",
      stage);
}

}  // namespace

std::unique_ptr<Stage> make_extract_stage(ExtractOptions) { throw_not_built("extract"); }
std::unique_ptr<Stage> make_langid_stage(const std::string&, bool) { throw_not_built("langid"); }

}  // namespace teratron
