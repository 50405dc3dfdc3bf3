#include "comm/control/address_launch.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "base/error.h"
#include "base/files/file.h"
#include "comm/control/membership.h"

namespace teratron {
namespace {

constexpr int kMostRanks = 1 << 16, kLastPort = 65535;

std::string text_of(const EnvironmentLookup& environment, const char* name) {
  const char* const text = environment(name);
  return text == nullptr ? "" : text;
}

std::optional<int> number_in(const std::string& text, int least, int most) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < least || number > most) return std::nullopt;
  return number;
}

// Ports that the first rank tries. torchrun's own store listens at MASTER_PORT as long as its workers live; a variable
// says if it does (`is_taken`), and neighbouring ports are used then.
std::vector<std::uint16_t> ports_for(int port, bool is_taken) {
  constexpr int kTries = 16;
  if (!is_taken) return {static_cast<std::uint16_t>(port)};
  std::vector<std::uint16_t> ports;
  for (int n = 1; n <= kTries; ++n) {
    ports.push_back(static_cast<std::uint16_t>(port + kTries <= kLastPort ? port + n : port - n));
  }
  return ports;
}

// Command that draws a secret.
constexpr std::string_view kHowToDraw = "export TERATRON_SECRET=$(od -An -tx1 -N16 /dev/urandom | tr -d ' \\n')";

std::string secret_in(const EnvironmentLookup& environment) {
  constexpr std::size_t kShortest = 16;
  std::string secret = text_of(environment, "TERATRON_SECRET");
  const std::string file = text_of(environment, "TERATRON_SECRET_FILE");
  if (secret.empty() && file.empty()) return "";
  const bool is_read = secret.empty();
  if (is_read) secret = read_file(file);
  secret.erase(secret.find_last_not_of(" \t\r\n") + 1);
  if (secret.size() >= kShortest) return secret;
  throw_user_error(
      "the secret in {} has {} characters, and {} are needed at least; draw it, once for all processes: {}",
      is_read ? fmt::format("'{}' (TERATRON_SECRET_FILE)", file) : "TERATRON_SECRET", secret.size(), kShortest,
      kHowToDraw);
}

[[noreturn]] void throw_no_secret(const std::string& what) {
  throw_user_error(
      "{}, so that others than the job's processes may reach the first one; give all of them a secret: {} (or a file "
      "with it, that TERATRON_SECRET_FILE names). Processes of one host need none with MASTER_ADDR=127.0.0.1",
      what, kHowToDraw);
}

bool is_reached_from_here_alone(const std::string& host) {
  const std::vector<sockaddr_in> addresses = resolve(host, 0);
  return !addresses.empty() && std::ranges::all_of(addresses, is_loopback);
}

}  // namespace

MeetingPoint meeting_point_of(const AddressLaunch& launch, const std::string& bind) {
  MeetingPoint point{.hosts = {launch.is_one_host && bind.empty() ? "127.0.0.1" : launch.address},
                     .ports = launch.ports,
                     .secret = fmt::format("{} {}", launch.secret, launch.job),
                     .is_drawn = !launch.secret.empty(),
                     .bind = bind,
                     .name = fmt::format("{}:{}", launch.address, launch.port)};
  const std::string& host = point.hosts.front();
  const bool is_local = is_reached_from_here_alone(host);
  if (!point.is_drawn && !is_local) throw_no_secret(fmt::format("MASTER_ADDR is {}", host));
  if (!point.is_drawn && !bind.empty() && !is_reached_from_here_alone(bind)) {
    throw_no_secret(fmt::format("--bind is {}", bind));
  }
  // A host's own name may stand for a loopback address there, and for another one on the other hosts.
  const bool is_meant = !point.is_drawn || is_dotted_address(host) || host == "localhost";
  if (bind.empty() && is_local && is_meant) point.bind = dotted(resolve(host, 0).front());
  return point;
}

std::optional<AddressLaunch> find_address_launch(const EnvironmentLookup& environment) {
  const std::string rank = text_of(environment, "RANK"), world_size = text_of(environment, "WORLD_SIZE"),
                    address = text_of(environment, "MASTER_ADDR"), port = text_of(environment, "MASTER_PORT");
  const int variables = (rank.empty() ? 0 : 1) + (world_size.empty() ? 0 : 1);  // one alone may be another tool's
  if (variables == 0 || (variables == 1 && address.empty()) || world_size == "1") return std::nullopt;
  std::string faults;
  const auto number = [&](const char* name, const std::string& text, int least, int most, const char* meaning) {
    const std::optional<int> value = number_in(text, least, most);
    if (!value && text.empty()) faults += fmt::format("\n  {} is not set: {}", name, meaning);
    if (!value && !text.empty()) {
      faults +=
          fmt::format("\n  {} is \"{}\", but has to be a number from {} to {}: {}", name, text, least, most, meaning);
    }
    return value.value_or(0);
  };
  const int processes = number("WORLD_SIZE", world_size, 1, kMostRanks, "how many processes were started");
  const int last = processes > 0 ? processes - 1 : kMostRanks - 1;
  AddressLaunch launch{.rank = number("RANK", rank, 0, last, "which of them this is"), .world_size = processes};
  if (address.empty()) faults += "\n  MASTER_ADDR is not set: the name or address of the host of rank 0";
  const int master_port = number("MASTER_PORT", port, 1, kLastPort, "a free port of that host");
  if (!faults.empty()) {
    throw_user_error(
        "the environment says that several processes were started together, but not how they find each other; set all "
        "of RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, or unset RANK and WORLD_SIZE for one process:{}",
        faults);
  }
  const std::string run = text_of(environment, "TORCHELASTIC_RUN_ID");
  launch.address = address;
  launch.port = static_cast<std::uint16_t>(master_port);
  launch.ports = ports_for(master_port, text_of(environment, "TORCHELASTIC_USE_AGENT_STORE") == "True");
  launch.job = fmt::format("{} {} {}", master_port, run, text_of(environment, "TORCHELASTIC_RESTART_COUNT"));
  launch.secret = secret_in(environment);
  launch.is_one_host = text_of(environment, "LOCAL_WORLD_SIZE") == world_size;
  launch.launcher = run.empty() ? fmt::format("the job at {}:{}", address, port) : "torchrun";
  return launch;
}

}  // namespace teratron
