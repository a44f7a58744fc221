#include "io/token_writer.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "io/byte_line.h"
#include "io/durable_file.h"
#include "io/posix_file.h"

namespace dew {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kBufferBytes = 1 << 20;  // large enough that system calls cost nothing

[[noreturn]] void system_error(const std::string& path, const char* what) {
  throw Error(path + ": " + what + ": " + system_reason(errno));
}

/// A file under a temporary name, written from its start on, that is removed unless published.
class PendingFile {
 public:
  PendingFile(const std::string& directory, std::string_view name)
      : path_(directory + '/' + std::string(name)),
        file_(PosixFile::create(directory + "/." + std::string(name) + ".partial")) {}
  PendingFile(const PendingFile&) = delete;
  PendingFile& operator=(const PendingFile&) = delete;
  ~PendingFile() {
    if (!published_) ::unlink(file_.path().c_str());
  }

  void append(const char* bytes, std::int64_t count) {
    file_.write_at(size_, bytes, count);
    size_ += count;
  }
  void finish() {
    file_.sync();
    file_.close();
  }
  void publish() {
    publish_file(file_.path(), path_);
    published_ = true;
  }

 private:
  std::string path_;
  PosixFile file_;
  std::int64_t size_ = 0;
  bool published_ = false;
};

/// Sizes of the inputs. Throws ConfigError with every input that will not do.
std::vector<std::int64_t> input_sizes(const std::vector<std::string>& files) {
  std::vector<std::string> messages;
  std::vector<std::int64_t> sizes;
  for (const std::string& file : files) {
    std::error_code error;
    const fs::file_status status = fs::status(file, error);
    if (!fs::exists(status)) {
      messages.push_back("TEXT: " + file + ": " + (error ? error.message() : "there is no such file"));
    } else if (!fs::is_regular_file(status)) {
      messages.push_back("TEXT: " + file + ": not a regular file");
    } else if (const std::uintmax_t bytes = fs::file_size(file, error); error || bytes == 0) {
      messages.push_back("TEXT: " + file + ": " + (error ? error.message() : "the file is empty"));
    } else if (::access(file.c_str(), R_OK) != 0) {
      messages.push_back("TEXT: " + file + ": " + system_reason(errno));
    } else {
      sizes.push_back(static_cast<std::int64_t>(bytes));
    }
  }
  if (files.empty()) messages.push_back("TEXT: no file is named; at least one is needed");
  if (!messages.empty()) throw ConfigError(messages);
  return sizes;
}

void refuse_existing(const std::string& directory) {
  for (const std::string_view name : {kTrainFile, kValidationFile, kMetaFile}) {
    const std::string path = directory + '/' + std::string(name);
    std::error_code ignored;
    if (fs::exists(path, ignored)) {
      throw ConfigError("--out: " + directory + ": holds " + std::string(name) +
                        " already; name another directory, or add --force to replace it");
    }
  }
}

/// Copies `size` bytes of a file: the first `left` that still belong to training there, the rest to
/// validation.
void split_file(const std::string& path, std::int64_t size, std::int64_t& left, PendingFile& train,
                PendingFile& validation) {
  const PosixFile file = PosixFile::open_to_read(path);
  std::vector<char> buffer(kBufferBytes);
  std::int64_t copied = 0, count = kBufferBytes;
  while (count == kBufferBytes && copied <= size) {
    count = file.read_at(copied, buffer.data(), kBufferBytes);
    const std::int64_t first = std::min(left, count);
    train.append(buffer.data(), first);
    validation.append(buffer.data() + first, count - first);
    left -= first;
    copied += count;
  }
  if (copied != size)
    throw Error(path + ": changed while it was read; it held " + std::to_string(size) + " bytes");
}

}  // namespace

TokenMeta write_byte_tokens(const ByteCorpus& corpus, const std::string& directory, bool replace) {
  const std::vector<std::int64_t> sizes = input_sizes(corpus.files);
  std::int64_t total = 0;
  for (const std::int64_t size : sizes) total += size;
  TokenMeta meta;
  meta.tokenizer = "bytes";
  meta.vocab_size = kByteVocabulary;
  meta.type = TokenType::kUint8;
  meta.val_tokens = validation_tokens(total, corpus.validation, "--validation");
  meta.train_tokens = total - meta.val_tokens;
  if (!replace) refuse_existing(directory);
  make_writable_directory(directory, "--out");

  PendingFile train(directory, kTrainFile);
  PendingFile validation(directory, kValidationFile);
  std::int64_t left = meta.train_tokens;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    split_file(corpus.files[i], sizes[i], left, train, validation);
  train.finish();
  validation.finish();

  // Old counts must not stand beside new ids, should the machine stop between the renames.
  const std::string meta_path = directory + '/' + std::string(kMetaFile);
  if (std::remove(meta_path.c_str()) != 0 && errno != ENOENT) system_error(meta_path, "cannot be removed");
  sync_path(directory);
  train.publish();
  validation.publish();
  write_file_durably(meta_path, to_json(meta));
  return meta;
}

}  // namespace dew
