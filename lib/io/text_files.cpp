#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "io/byte_line.h"
#include "io/mapped_file.h"
#include "io/token_source.h"

namespace dew {
namespace {

std::vector<std::span<const std::byte>> pieces_of(const std::vector<MappedFile>& files) {
  std::vector<std::span<const std::byte>> pieces;
  for (const MappedFile& file : files) pieces.push_back(file.bytes());
  return pieces;
}

class TextFiles final : public TokenSource {
 public:
  TextFiles(std::vector<MappedFile> files, double validation)
      : files_(std::move(files)), line_(pieces_of(files_), validation) {}

  std::int64_t vocab_size() const override { return kByteVocabulary; }
  std::int64_t tokens(Split split) const override { return line_.tokens(split); }
  void read(Split split, std::int64_t begin, std::span<std::int32_t> ids) const override {
    line_.read(split, begin, ids);
  }
  void will_need(Split split, std::int64_t begin, std::int64_t count) const override {
    line_.for_pieces(split, begin, count, [this](std::size_t file, std::int64_t first, std::int64_t bytes) {
      files_[file].will_need(first, bytes);
    });
  }
  std::string describe() const override {
    return format("text (%zu %s, %s, bytes)", files_.size(), files_.size() == 1 ? "file" : "files",
                  format_bytes(static_cast<double>(line_.total())).c_str());
  }

 private:
  std::vector<MappedFile> files_;
  ByteLine line_;
};

}  // namespace

std::unique_ptr<TokenSource> open_text_files(const std::vector<std::string>& files, double validation) {
  if (files.empty()) throw ConfigError("data.text: names no file; at least one is needed");
  std::vector<MappedFile> mapped;
  for (const std::string& file : files) {
    mapped.emplace_back(file, "data.text");
    if (mapped.back().bytes().empty()) throw ConfigError("data.text: " + file + ": the file is empty");
  }
  return std::make_unique<TextFiles>(std::move(mapped), validation);
}

}  // namespace dew
