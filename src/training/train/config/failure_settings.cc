#include "train/config/failure_settings.h"

#include <iterator>
#include <limits>
#include <sstream>

#include "base/files/file.h"

namespace teratron {
namespace {

constexpr Flag kRestart{"restart-on-failure"};
constexpr Flag kLauncherFlag{"launcher"};

}  // namespace

std::vector<std::string> FailureSettings::launcher_words() const {
  std::istringstream words(launcher);
  return {std::istream_iterator<std::string>(words), {}};
}

Faults FailureSettings::faults(const std::filesystem::path& save, const std::filesystem::path& config) const {
  constexpr std::int64_t kMostSeconds = 1'000'000'000, kMostRestarts = std::numeric_limits<std::int32_t>::max();
  Faults faults;
  faults.need_between({"watchdog"}, watchdog, 0, kMostSeconds);
  faults.need_between(kRestart, restarts, 0, kMostRestarts);
  faults.add_if(restarts > 0 && save.empty(),
                "{} starts again from the last checkpoint, and needs a place for it: {} DIR", kRestart, Flag{"save"});
  faults.add_if(restarts > 0 && names_standard_input(config),
                "{} reads {} again at every start, and standard input can be read once; name a file", kRestart,
                Flag{"config"});
  faults.add_if(restarts == 0 && !launcher.empty(), "{} is for runs that are started again: {} N", kLauncherFlag,
                kRestart);
  return faults;
}

void add_watchdog_field(FieldList& list, FailureSettings& s) {
  list.add("watchdog", &s.watchdog, "SECONDS",
           "end the run where a rank makes no progress for so long, and say where each rank is; 0: never")
      .of(FieldScope::kCommand);
}

void add_restart_fields(FieldList& list, FailureSettings& s) {
  list.add("restart-on-failure", &s.restarts, "N",
           "start a run that died again, from its last checkpoint in --save, at most so often")
      .of(FieldScope::kStart);
  list.add("launcher", &s.launcher, "COMMAND",
           "with --restart-on-failure: start ranks as processes, by this command and its words: 'mpirun -n 4'")
      .of(FieldScope::kStart);
}

}  // namespace teratron
