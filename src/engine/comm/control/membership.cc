#include "comm/control/membership.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "comm/lost_rank.h"

namespace teratron {
namespace {

constexpr const char* kProtocol = "4";  // of all frames
constexpr std::size_t kHelloFields = 6, kNoticeFields = 6;

// Takes the same time wherever the texts differ.
bool is_same_secret(const std::string& a, const std::string& b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) difference |= static_cast<unsigned char>(a[i] ^ b[i]);
  return difference == 0;
}

FailureNotice user_fault(std::string text) { return {.kind = FailureNotice::Kind::kUser, .reason = std::move(text)}; }

}  // namespace

void FailureNotice::raise() const {
  switch (kind) {
    case Kind::kUser: throw UserError(reason);
    case Kind::kEnvironment: throw EnvironmentError(reason);
    case Kind::kLostRank: break;
  }
  throw LostRank(rank, host, activity, reason);
}

std::string FailureNotice::message() const {
  return kind == Kind::kLostRank ? LostRank(rank, host, activity, reason).what() : reason;
}

Frame FailureNotice::frame() const {
  return {"failure", std::to_string(static_cast<int>(kind)), reason, std::to_string(rank), host, activity};
}

std::optional<FailureNotice> FailureNotice::parse(const Frame& frame) {
  if (frame.size() != kNoticeFields || frame[0] != "failure") return std::nullopt;
  const int kind = number_from(frame[1]);
  if (kind < 0 || kind > static_cast<int>(Kind::kLostRank)) return std::nullopt;
  return FailureNotice{static_cast<Kind>(kind), frame[2], number_from(frame[3]), frame[4], frame[5]};
}

Frame Hello::frame(const Membership& own) {
  return {"hello", kProtocol, own.point.secret, std::to_string(own.size), std::to_string(own.rank), own.host};
}

std::optional<Hello> Hello::parse(const Frame& frame, const MeetingPoint& point) {
  if (frame.size() < 5 || frame[0] != "hello" || !is_same_secret(frame[2], point.secret)) return std::nullopt;
  Hello hello{.rank = number_from(frame[4]), .size = number_from(frame[3]), .protocol = frame[1]};
  if (frame.size() == kHelloFields) hello.host = frame[5];
  return hello;
}

std::optional<FailureNotice> fault_of(const Hello& hello, const std::vector<std::string>& hosts) {
  const int size = static_cast<int>(hosts.size());
  if (hello.protocol != kProtocol || hello.host.empty()) {
    return user_fault(
        fmt::format("rank {} runs another version of teratron (control protocol {}, rank 0 has {}); "
                    "start the same program everywhere",
                    hello.rank, hello.protocol, kProtocol));
  }
  if (hello.size != size) {
    return user_fault(
        fmt::format("rank {} on host {} was started with WORLD_SIZE={}, and rank 0 on host {} with "
                    "WORLD_SIZE={}; start all processes with the same number",
                    hello.rank, hello.host, hello.size, hosts[0], size));
  }
  const bool is_rank = hello.rank >= 0 && hello.rank < size;
  const std::string other = is_rank ? hosts[static_cast<std::size_t>(hello.rank)] : hello.host;
  if (!is_rank || !other.empty()) {
    return user_fault(
        fmt::format("two processes were started with RANK={}, on host {} and on host {}; give each its "
                    "own, from 0 to {}",
                    hello.rank, other, hello.host, size - 1));
  }
  return std::nullopt;
}

std::string text_of_ranks(const std::vector<int>& ranks) {
  const std::size_t shown = std::min<std::size_t>(ranks.size(), 16);
  return fmt::format("rank{} {}{}", ranks.size() == 1 ? "" : "s",
                     fmt::join(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
                     shown < ranks.size() ? ", .." : "");
}

int number_from(const std::string& text) {
  return text.empty() || text.size() > 8 || text.find_first_not_of("0123456789") != text.npos ? -1 : std::stoi(text);
}

std::uint64_t count_from(const std::string& text) {
  std::uint64_t count = 0;
  const char* const end = text.data() + text.size();
  return std::from_chars(text.data(), end, count).ptr == end ? count : 0;
}

}  // namespace teratron
