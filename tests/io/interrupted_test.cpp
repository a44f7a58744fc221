// Signals may interrupt any call of the system that waits. Disks of this machine do not wait long enough for
// that, so this program puts calls before those of the system of which each is interrupted once.
#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "io/checkpoint.h"
#include "io/checkpoint_cases.h"
#include "io/durable_file.h"
#include "io/mapped_file.h"
#include "io/metrics_log.h"
#include "io/token_writer.h"

namespace dew {
namespace {

/// Interruptions by the name of the call, while not null.
std::map<std::string, int>* interruptions = nullptr;
/// The call that was interrupted last: the next one of that name is not.
std::string interrupted_call;

bool interrupts(const char* call) {
  if (interruptions == nullptr) return false;
  if (interrupted_call == call) {
    interrupted_call.clear();
    return false;
  }
  interrupted_call = call;
  ++(*interruptions)[call];
  errno = EINTR;
  return true;
}

/// The system's own call of that name, unless this one is interrupted: then -1.
template <class Result, class... Arguments>
Result call(const char* name, Arguments... arguments) {
  if (interrupts(name)) return -1;
  return reinterpret_cast<Result (*)(Arguments...)>(::dlsym(RTLD_NEXT, name))(arguments...);
}

}  // namespace
}  // namespace dew

// By these names the linker finds them before those of the system.
extern "C" {
int interrupted_open(const char* path, int flags, ...) __asm__("open");
ssize_t interrupted_pread(int file, void* into, size_t bytes, off_t offset) __asm__("pread");
ssize_t interrupted_pwrite(int file, const void* from, size_t bytes, off_t offset) __asm__("pwrite");
ssize_t interrupted_write(int file, const void* from, size_t bytes) __asm__("write");
int interrupted_fsync(int file) __asm__("fsync");
int interrupted_fallocate(int file, int mode, off_t offset, off_t bytes) __asm__("fallocate");
int interrupted_statvfs(const char* path, struct statvfs* into) __asm__("statvfs");
int interrupted_mkstemp(char* pattern) __asm__("mkstemp");
}

int interrupted_open(const char* path, int flags, ...) {
  std::va_list rest;
  va_start(rest, flags);
  const int mode = (flags & O_CREAT) != 0 ? va_arg(rest, int) : 0;
  va_end(rest);
  if (dew::interrupts("open")) return -1;
  return ::openat(AT_FDCWD, path, flags, mode);
}
ssize_t interrupted_pread(int file, void* into, size_t bytes, off_t offset) {
  return dew::call<ssize_t>("pread", file, into, bytes, offset);
}
ssize_t interrupted_pwrite(int file, const void* from, size_t bytes, off_t offset) {
  return dew::call<ssize_t>("pwrite", file, from, bytes, offset);
}
ssize_t interrupted_write(int file, const void* from, size_t bytes) {
  return dew::call<ssize_t>("write", file, from, bytes);
}
int interrupted_fsync(int file) {
  return dew::call<int>("fsync", file);
}
int interrupted_fallocate(int file, int mode, off_t offset, off_t bytes) {
  return dew::call<int>("fallocate", file, mode, offset, bytes);
}
int interrupted_statvfs(const char* path, struct statvfs* into) {
  return dew::call<int>("statvfs", path, into);
}
int interrupted_mkstemp(char* pattern) {
  const int file = dew::call<int>("mkstemp", pattern);
  // As the system does: it fills the pattern in before it opens the file.
  if (file < 0) std::replace(pattern, pattern + std::strlen(pattern), 'X', 'a');
  return file;
}

namespace dew {
namespace {

using namespace testing;

/// Interruptions of every call, once each, until the end of the scope.
class Interrupting {
 public:
  Interrupting() { interruptions = &counts; }
  ~Interrupting() { interruptions = nullptr; }
  std::map<std::string, int> counts;
};

TEST(Interrupted, TextsAreWrittenDurably) {
  const SharedDirectory directory;
  const std::string path = directory.path() + "/text";
  Interrupting interrupting;

  write_file_durably(path, "words");

  for (const char* name : {"open", "pwrite", "fsync"}) EXPECT_GE(interrupting.counts[name], 1) << name;
  EXPECT_EQ(read_bytes(path), "words");
}

TEST(Interrupted, DirectoriesAreExamined) {
  const SharedDirectory directory;
  Interrupting interrupting;

  make_writable_directory(directory.path() + "/new", "run.dir");
  require_space(directory.path(), 1);

  for (const char* name : {"mkstemp", "statvfs"}) EXPECT_EQ(interrupting.counts[name], 1) << name;
}

TEST(Interrupted, MetricsAreReadAndWritten) {
  const SharedDirectory directory;
  const std::string path = directory.path() + "/metrics.jsonl";
  write_bytes(path, "{\"step\": 1}\n");
  Interrupting interrupting;

  MetricsLog log(path, 1);
  log.write(std::vector<JsonField>{{"step", std::int64_t{2}}});

  for (const char* name : {"open", "pread", "write"}) EXPECT_GE(interrupting.counts[name], 1) << name;
  EXPECT_EQ(read_bytes(path), "{\"step\": 1}\n{\"step\": 2}\n");
}

TEST(Interrupted, FilesAreMappedAndTokensWritten) {
  const SharedDirectory directory;
  const std::string text = directory.path() + "/text", tokens = directory.path() + "/tokens";
  write_bytes(text, std::string(257, 'x'));
  ByteCorpus corpus;
  corpus.files = {text};
  Interrupting interrupting;

  const MappedFile file(text, "data.text");
  const TokenMeta meta = write_byte_tokens(corpus, tokens, false);

  EXPECT_EQ(file.bytes().size(), 257u);
  EXPECT_EQ(meta.train_tokens + meta.val_tokens, 257);
  EXPECT_GE(interrupting.counts["pread"], 1);
}

TEST(Interrupted, CheckpointsAreSavedAndRestored) {
  const SharedDirectory directory;
  State state(fsdp(1), 0, DType::kF32);
  state.fill();
  Interrupting interrupting;

  save_checkpoint(directory.path(), state.shards, run_state(5), 2, world());
  state.spoil();
  LogFile log;
  const std::optional<Restored> restored =
      restore_newest(directory.path(), state.shards, {}, world(), log.log);

  for (const char* name : {"open", "pread", "pwrite", "fallocate", "fsync"})
    EXPECT_GE(interrupting.counts[name], 1) << name;
  ASSERT_TRUE(restored);
  EXPECT_EQ(restored->state.step, 5);
  EXPECT_EQ(state.wrong(DType::kF32), 0);
}

}  // namespace
}  // namespace dew
