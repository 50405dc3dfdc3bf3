// The tracker file beside a folder of a checkpoint.
#include "checkpoint/native/folders.h"
#include "fuzz.h"

void teratron::fuzz::parse(std::string_view input) {
  put(kTrackerFile, input);
  std::filesystem::create_directories(iteration_folder(folder(), 3));
  find_checkpoint(folder());
}
