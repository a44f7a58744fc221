// A file is durable before it has its name, and the name before anybody goes on. The order of the system
// calls is the only trace of it short of cutting the power: this program puts its own fsync and rename before
// those of the library.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "io/checkpoint.h"
#include "io/checkpoint_cases.h"
#include "io/durable_file.h"

namespace dew {
namespace {

/// What was asked of the system, in order: "sync PATH" and "rename PATH".
std::vector<std::string> calls;
/// Noted with each sync as " named" once it exists.
std::string awaited;

std::string path_of(int descriptor) {
  std::array<char, 4096> path{};
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  const ssize_t length = ::readlink(link.c_str(), path.data(), path.size());
  return length < 0 ? std::string() : std::string(path.data(), static_cast<std::size_t>(length));
}

}  // namespace
}  // namespace dew

// By these names the linker finds them before those of the system.
extern "C" int traced_fsync(int descriptor) __asm__("fsync");
extern "C" int traced_rename(const char* from, const char* to) __asm__("rename");

int traced_fsync(int descriptor) {
  const bool named = ::access(dew::awaited.c_str(), F_OK) == 0;
  dew::calls.push_back("sync " + dew::path_of(descriptor) + (named ? " named" : ""));
  return static_cast<int>(::syscall(SYS_fsync, descriptor));
}

int traced_rename(const char* from, const char* to) {
  dew::calls.push_back(std::string("rename ") + from);
  return static_cast<int>(::syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0U));
}

namespace dew {
namespace {

using namespace testing;

/// As the system shows it for an open file.
std::string canonical(const SharedDirectory& directory) {
  return std::filesystem::canonical(directory.path()).string();
}

std::vector<std::string> calls_of(const std::string& name, const std::function<void()>& work) {
  awaited = name;
  calls.clear();
  work();
  return calls;
}

TEST(DurableOrder, OfATextIsSyncThenRenameThenSyncOfTheFolder) {
  const SharedDirectory directory;
  const std::string folder = canonical(directory) + "/rank_" + std::to_string(world().rank());
  make_writable_directory(folder, "folder");

  const auto seen = calls_of(folder + "/text", [&] { write_file_durably(folder + "/text", "words"); });

  const std::string partial = folder + "/.text.partial";
  EXPECT_EQ(seen,
            (std::vector<std::string>{"sync " + partial, "rename " + partial, "sync " + folder + " named"}));
}

TEST(DurableOrder, OfACheckpointIsSyncOnEveryRankThenRenameThenSyncOfTheFolder) {
  const SharedDirectory directory;
  const std::string folder = canonical(directory);
  State state(fsdp(world().size()), world().rank(), DType::kF32);
  state.fill();

  const auto seen = calls_of(folder + "/" + checkpoint_name(3),
                             [&] { save_checkpoint(folder, state.shards, run_state(3), 2, world()); });

  const std::string partial = folder + "/." + checkpoint_name(3) + ".partial";
  std::vector<std::string> wanted{"sync " + partial};
  if (world().rank() == 0) {
    wanted.push_back("rename " + partial);
    wanted.push_back("sync " + folder + " named");
  }
  EXPECT_EQ(seen, wanted);
}

}  // namespace
}  // namespace dew
