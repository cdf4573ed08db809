//===- Link.cpp - messages of the control channel over a socket -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ranks meet in three all-gathers, which every rank takes part in whatever has
// failed on it: where each rank is; where rank 0 listens; who has connected.
// Rank 0 listens on the loopback interface only, if all ranks share its
// network. A token keeps other programs' connections out.
//
//===----------------------------------------------------------------------===//

#include "Runtime/Control/Link.h"
#include "Support/Try.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

namespace tessera::control {

using Clock = std::chrono::steady_clock;

/// For ranks to connect with rank 0, at most, in seconds.
static constexpr double kMeetingSeconds = 20;

//===----------------------------------------------------------------------===//
// Link
//===----------------------------------------------------------------------===//

Link::Link(Link &&other) noexcept
    : fd(std::exchange(other.fd, -1)), in(std::move(other.in)),
      out(std::move(other.out)), sent(other.sent) {}

Link &Link::operator=(Link &&other) noexcept {
  std::swap(fd, other.fd);
  std::swap(in, other.in);
  std::swap(out, other.out);
  std::swap(sent, other.sent);
  return *this;
}

Link::~Link() { close(); }

void Link::close() {
  if (fd >= 0)
    ::close(fd);
  fd = -1;
}

bool Link::flush() {
  while (fd >= 0 && hasUnsent()) {
    ssize_t count = ::send(fd, out.data() + sent, out.size() - sent,
                           MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return errno == EAGAIN || errno == EWOULDBLOCK;
    sent += static_cast<size_t>(count);
  }
  out.clear();
  sent = 0;
  return fd >= 0;
}

bool Link::send(const Message &message) {
  if (!flush())
    return false;
  if (hasUnsent() && message.kind == Kind::Report)
    return true;
  const char *bytes = reinterpret_cast<const char *>(&message);
  out.insert(out.end(), bytes, bytes + sizeof message);
  return flush();
}

bool Link::receive(std::vector<Message> &messages) {
  char buffer[16 * sizeof(Message)];
  bool open = fd >= 0;
  while (open) {
    ssize_t count = recv(fd, buffer, sizeof buffer, MSG_DONTWAIT);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
      break;
    if (count <= 0)
      open = false; // after what came before the end has been taken
    else
      in.insert(in.end(), buffer, buffer + count);
  }
  size_t at = 0;
  for (; in.size() - at >= sizeof(Message); at += sizeof(Message)) {
    Message message;
    std::memcpy(&message, in.data() + at, sizeof message);
    messages.push_back(message);
  }
  in.erase(in.begin(), in.begin() + static_cast<ptrdiff_t>(at));
  return open;
}

//===----------------------------------------------------------------------===//
// Meeting
//===----------------------------------------------------------------------===//

namespace {

/// Equal for two processes that reach each other over the loopback interface.
struct Network {
  char boot[40];
  char space[40];
};

/// Where rank 0 listens.
struct Place {
  uint64_t token;
  uint32_t port; ///< 0: it does not
  uint32_t numAddresses;
  uint32_t addresses[8]; ///< IPv4, in network order
  char reason[200];
};

struct Arrival {
  uint32_t here;
  char reason[200];
};

} // namespace

static Network thisNetwork() {
  Network network = {};
  int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  if (fd >= 0) {
    if (read(fd, network.boot, sizeof network.boot - 1) < 0)
      network.boot[0] = 0;
    close(fd);
  }
  if (readlink("/proc/self/ns/net", network.space, sizeof network.space - 1) <
      0)
    network.space[0] = 0;
  return network;
}

static bool setNonBlocking(int fd) {
  int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  return fcntl(fd, F_SETFL, O_NONBLOCK) == 0;
}

/// Waits for `events`; false past `until`.
static bool waitFor(int fd, short events, Clock::time_point until) {
  while (true) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        until - Clock::now());
    if (left.count() <= 0)
      return false;
    pollfd wait = {fd, events, 0};
    int count = ::poll(&wait, 1, static_cast<int>(left.count()));
    if (count > 0)
      return true;
    if (count < 0 && errno != EINTR)
      return false;
  }
}

static sockaddr_in addressOf(uint32_t address, uint32_t port) {
  sockaddr_in result = {};
  result.sin_family = AF_INET;
  result.sin_addr.s_addr = address;
  result.sin_port = htons(static_cast<uint16_t>(port));
  return result;
}

/// Rank 0 opens a listening socket and says where.
static int listenAt(bool loopback, int world, Place &place) {
  int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address =
      addressOf(htonl(loopback ? INADDR_LOOPBACK : INADDR_ANY), 0);
  socklen_t length = sizeof address;
  if (fd < 0 ||
      bind(fd, reinterpret_cast<sockaddr *>(&address), sizeof address) != 0 ||
      listen(fd, world) != 0 || !setNonBlocking(fd) ||
      getsockname(fd, reinterpret_cast<sockaddr *>(&address), &length) != 0 ||
      getrandom(&place.token, sizeof place.token, 0) != sizeof place.token) {
    setText(place.reason, std::string("rank 0 cannot listen on a socket: ") +
                              std::strerror(errno));
    if (fd >= 0)
      close(fd);
    return -1;
  }
  place.port = ntohs(address.sin_port);
  if (loopback) {
    place.addresses[place.numAddresses++] = htonl(INADDR_LOOPBACK);
    return fd;
  }
  ifaddrs *interfaces = nullptr;
  if (getifaddrs(&interfaces) == 0) {
    for (ifaddrs *each = interfaces; each; each = each->ifa_next) {
      if (!each->ifa_addr || each->ifa_addr->sa_family != AF_INET ||
          place.numAddresses == std::size(place.addresses))
        continue;
      uint32_t one =
          reinterpret_cast<sockaddr_in *>(each->ifa_addr)->sin_addr.s_addr;
      if (ntohl(one) >> 24 != 127)
        place.addresses[place.numAddresses++] = one;
    }
    freeifaddrs(interfaces);
  }
  return fd;
}

/// Another rank connects; an open link, or a closed one and the reason.
static Link connectTo(int rank, const Place &place, Clock::duration time,
                      char (&reason)[200]) {
  Clock::time_point until = Clock::now() + time;
  int error = EHOSTUNREACH;
  for (uint32_t i = 0; i < place.numAddresses; ++i) {
    Link link(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!link.isOpen() || !setNonBlocking(link.socket())) {
      error = errno;
      continue;
    }
    sockaddr_in address = addressOf(place.addresses[i], place.port);
    if (connect(link.socket(), reinterpret_cast<sockaddr *>(&address),
                sizeof address) != 0) {
      if (errno != EINPROGRESS ||
          !waitFor(link.socket(), POLLOUT,
                   std::min(until, Clock::now() + time / 4))) {
        error = errno == EINPROGRESS ? ETIMEDOUT : errno;
        continue;
      }
      socklen_t length = sizeof error;
      getsockopt(link.socket(), SOL_SOCKET, SO_ERROR, &error, &length);
      if (error != 0)
        continue;
    }
    Message hello;
    hello.kind = Kind::Hello;
    hello.token = place.token;
    hello.rank = rank;
    if (link.send(hello))
      return link;
    error = errno;
  }
  setText(reason,
          std::string("cannot connect to rank 0: ") + std::strerror(error));
  return Link(-1);
}

/// Rank 0 takes the others' connections into `links`.
static void acceptAll(int listener, uint64_t token, Clock::duration time,
                      std::vector<Link> &links, char (&reason)[200]) {
  Clock::time_point until = Clock::now() + time;
  std::vector<Link> strangers;
  size_t missing = links.size() - 1;
  while (missing > 0) {
    std::vector<pollfd> waits = {{listener, POLLIN, 0}};
    for (const Link &link : strangers)
      waits.push_back({link.socket(), POLLIN, 0});
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        until - Clock::now());
    if (left.count() <= 0)
      break;
    ::poll(waits.data(), waits.size(), static_cast<int>(left.count()));
    for (size_t i = strangers.size(); i-- > 0;) {
      std::vector<Message> messages;
      bool open = strangers[i].receive(messages);
      if (open && messages.empty())
        continue;
      if (!messages.empty() && messages[0].kind == Kind::Hello &&
          messages[0].token == token && messages[0].rank > 0 &&
          messages[0].rank < static_cast<int>(links.size()) &&
          !links[messages[0].rank].isOpen()) {
        links[messages[0].rank] = std::move(strangers[i]);
        --missing;
      }
      strangers.erase(strangers.begin() + static_cast<ptrdiff_t>(i));
    }
    int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd >= 0) {
      setNonBlocking(fd);
      strangers.emplace_back(fd);
    }
  }
  for (size_t rank = 1; rank < links.size(); ++rank) {
    if (!links[rank].isOpen()) {
      setText(
          reason,
          "rank " + std::to_string(rank) + " did not connect within " +
              std::to_string(
                  std::chrono::duration_cast<std::chrono::milliseconds>(time)
                      .count()) +
              " ms");
      return;
    }
  }
}

Result<std::vector<Link>> meet(int rank, int world, double deadline,
                               const AllGather &allGather) {
  // Who waits for a rank that does not connect still comes to the last
  // all-gather while others wait there.
  const auto time =
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(
          std::min(0.75 * deadline, kMeetingSeconds)));
  Network mine = thisNetwork();
  std::vector<Network> networks(static_cast<size_t>(world));
  TSR_TRY(allGather(&mine, networks.data(), sizeof mine));
  bool loopback = std::all_of(
      networks.begin(), networks.end(), [&](const Network &network) {
        return std::memcmp(&network, &networks[0], sizeof network) == 0;
      });

  Place place = {};
  int listener = rank == 0 ? listenAt(loopback, world, place) : -1;
  std::vector<Place> places(static_cast<size_t>(world));
  Status gathered = allGather(&place, places.data(), sizeof place);
  if (!gathered || places[0].port == 0) {
    if (listener >= 0)
      close(listener);
    return gathered ? Error{"control channel: " + getText(places[0].reason)}
                    : gathered.error();
  }

  std::vector<Link> links;
  Arrival arrival = {};
  if (rank == 0) {
    for (int i = 0; i < world; ++i)
      links.emplace_back(-1);
    acceptAll(listener, place.token, time, links, arrival.reason);
    close(listener);
  } else {
    links.push_back(connectTo(rank, places[0], time, arrival.reason));
  }
  arrival.here = arrival.reason[0] == 0;
  std::vector<Arrival> arrivals(static_cast<size_t>(world));
  TSR_TRY(allGather(&arrival, arrivals.data(), sizeof arrival));
  // A rank's own reason says more than rank 0's, which only misses it.
  for (int i = world; i-- > 0;)
    if (!arrivals[i].here)
      return Error{"control channel: rank " + std::to_string(i) + ": " +
                   getText(arrivals[i].reason)};
  return links;
}

} // namespace tessera::control
