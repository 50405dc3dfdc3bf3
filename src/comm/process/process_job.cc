#include "comm/process/process_job.h"

#include <unistd.h>

#include <cstdio>
#include <random>

#include "base/error.h"
#include "base/threads.h"
#include "comm/core_share.h"
#include "comm/lost_rank.h"
#include "comm/process/process_communicator.h"

namespace teratron {
namespace {

[[noreturn]] void end_process(const std::string& message) {
  std::fflush(stdout);
  std::fputs(fmt::format("error: {}\n", message).c_str(), stderr);
  std::fflush(stderr);
  ::_exit(static_cast<int>(ExitCode::kEnvironment));  // others notice, as does what started them
}

// The cores of a host are shared out among its ranks, and none uses more threads than its part.
void take_share_of_cores(Communicator& world, const std::string& host) {
  std::vector<std::vector<int>> cores_of_host;
  std::size_t own = 0;
  const std::vector<std::string> everyone = world.all_gather_host(host + "\n" + to_text(own_cores()));
  for (int rank = 0; rank < world.size(); ++rank) {
    const std::string& text = everyone[static_cast<std::size_t>(rank)];
    const std::size_t line_end = text.find('\n');
    if (text.substr(0, line_end) != host) continue;
    if (rank == world.rank()) own = cores_of_host.size();
    cores_of_host.push_back(cores_from_text(text.substr(line_end + 1)));
  }
  set_thread_count(std::min(thread_count(), core_share(cores_of_host, own)));
}

// A contact's first line is a number that nobody else guesses; the first rank's keeps strangers out of the job.
void start(Liveness& liveness, ProcessJob& job) {
  std::vector<std::string> contacts = job.meet(fmt::format("{}\n{}", std::random_device()(), liveness.contact()));
  const std::string name = contacts.at(0).substr(0, contacts.at(0).find('\n'));
  for (std::string& contact : contacts) contact.erase(0, contact.find('\n') + 1);
  liveness.start(contacts, name);
}

}  // namespace

void run_process_rank(ProcessJob& job, const std::string& host, const std::function<void(Communicator& world)>& body) {
  Liveness liveness(job.rank(), job.size(), host, end_process);
  start(liveness, job);
  try {
    const auto world = make_process_communicator(job.connect(liveness), liveness);
    take_share_of_cores(*world, host);
    body(*world);
    liveness.expect_farewells();
    world->barrier();  // whoever ends while another still works would be taken for lost
  } catch (const LostRank&) {
    throw;  // news of another's failure
  } catch (const std::exception& error) {
    liveness.report_failure(error.what());
    throw;
  } catch (...) {
    liveness.report_failure("an exception without a message");
    throw;
  }
}

}  // namespace teratron
