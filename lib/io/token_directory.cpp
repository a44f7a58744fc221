#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "io/mapped_file.h"
#include "io/token_meta.h"
#include "io/token_source.h"

namespace dew {
namespace {

static_assert(std::endian::native == std::endian::little, "token files are read as they lie, little-endian");

struct SplitFile {
  std::string path;
  MappedFile file;
  std::int64_t tokens;
  std::optional<MappedFile> mask;
  std::string mask_path;
};

/// The loss mask beside a split, where there is one.
std::optional<MappedFile> open_mask(const std::string& directory, std::string_view name, std::int64_t count) {
  const std::string path = directory + '/' + std::string(name);
  // Whatever has the name is a mask, even a link that leads nowhere: training without it would be silent.
  std::error_code ignored;
  if (std::filesystem::symlink_status(path, ignored).type() == std::filesystem::file_type::not_found)
    return std::nullopt;
  MappedFile file(path, "data.tokens");
  if (static_cast<std::int64_t>(file.bytes().size()) != count)
    throw ConfigError("data.tokens: " + path + ": holds " + std::to_string(file.bytes().size()) +
                      " bytes; accepted: one for each of the " + std::to_string(count) + " tokens");
  return file;
}

SplitFile open_split(const std::string& directory, std::string_view name, TokenType type,
                     std::string_view count_key, std::int64_t count, std::string_view mask) {
  const std::string path = directory + '/' + std::string(name);
  MappedFile file(path, "data.tokens");
  const auto bytes = static_cast<std::int64_t>(file.bytes().size());
  const auto width = static_cast<std::int64_t>(size_of(type));
  const std::string start = "data.tokens: " + path + ": ";
  if (bytes % width != 0) {
    throw ConfigError(start + std::to_string(bytes) + " bytes do not divide by the " + std::to_string(width) +
                      " bytes of a " + std::string(name_of(type)));
  }
  if (bytes / width != count) {
    throw ConfigError(start + "holds " + std::to_string(bytes / width) + " tokens of " +
                      std::string(name_of(type)) + ", but " + std::string(kMetaFile) + " says " +
                      std::string(count_key) + " " + std::to_string(count));
  }
  return {path, std::move(file), count, open_mask(directory, mask, count),
          directory + '/' + std::string(mask)};
}

/// Widens ids and returns the largest, 0 for none.
template <class T>
std::uint32_t widen(const std::byte* bytes, std::span<std::int32_t> ids) {
  const T* in = reinterpret_cast<const T*>(bytes);
  std::uint32_t largest = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::uint32_t id = in[i];
    largest = std::max(largest, id);
    ids[i] = static_cast<std::int32_t>(id);
  }
  return largest;
}

std::uint32_t widen(TokenType type, const std::byte* bytes, std::span<std::int32_t> ids) {
  if (type == TokenType::kUint8) return widen<std::uint8_t>(bytes, ids);
  return type == TokenType::kUint16 ? widen<std::uint16_t>(bytes, ids) : widen<std::uint32_t>(bytes, ids);
}

class TokenDirectory final : public TokenSource {
 public:
  TokenDirectory(std::string directory, TokenMeta meta)
      : directory_(std::move(directory)),
        meta_(std::move(meta)),
        splits_{
            open_split(directory_, kTrainFile, meta_.type, "train_tokens", meta_.train_tokens, kTrainMask),
            open_split(directory_, kValidationFile, meta_.type, "val_tokens", meta_.val_tokens,
                       kValidationMask)} {}

  std::int64_t vocab_size() const override { return meta_.vocab_size; }
  std::int64_t tokens(Split split) const override { return file_of(split).tokens; }
  std::optional<std::int32_t> eos_id() const override {
    if (!meta_.eos_id) return std::nullopt;
    return static_cast<std::int32_t>(*meta_.eos_id);
  }

  void read(Split split, std::int64_t begin, std::span<std::int32_t> ids) const override {
    const SplitFile& source = file_of(split);
    const auto count = static_cast<std::int64_t>(ids.size());
    DEW_CHECK(begin >= 0 && begin + count <= source.tokens, source.path, begin, count, source.tokens);
    const std::byte* first =
        source.file.bytes().data() + begin * static_cast<std::int64_t>(size_of(meta_.type));
    const std::uint32_t largest = widen(meta_.type, first, ids);
    if (!ids.empty() && largest >= meta_.vocab_size) refuse_id(source, begin, ids);
  }

  void read_mask(Split split, std::int64_t begin, std::span<std::uint8_t> counts) const override {
    const SplitFile& source = file_of(split);
    if (!source.mask) return TokenSource::read_mask(split, begin, counts);
    const auto count = static_cast<std::int64_t>(counts.size());
    DEW_CHECK(begin >= 0 && begin + count <= source.tokens, source.path, begin, count, source.tokens);
    std::memcpy(counts.data(), source.mask->bytes().data() + begin, counts.size());
    const auto wrong = std::find_if(counts.begin(), counts.end(), [](std::uint8_t b) { return b > 1; });
    if (wrong != counts.end())
      throw Error(source.mask_path + ": the loss mask of token " +
                  std::to_string(begin + (wrong - counts.begin())) + " is " + std::to_string(*wrong) +
                  "; accepted: 0 and 1");
  }

  void will_need(Split split, std::int64_t begin, std::int64_t count) const override {
    const auto width = static_cast<std::int64_t>(size_of(meta_.type));
    file_of(split).file.will_need(begin * width, count * width);
  }

  std::string describe() const override {
    const bool train_mask = splits_[0].mask.has_value(), validation_mask = splits_[1].mask.has_value();
    const char* masks = train_mask && validation_mask ? ", loss masks for both"
                        : train_mask                  ? ", a loss mask to train"
                        : validation_mask             ? ", a loss mask to validate"
                                                      : "";
    return format("tokens %s (%s, vocabulary %lld, %s to train, %s to validate%s)", directory_.c_str(),
                  meta_.tokenizer.c_str(), static_cast<long long>(meta_.vocab_size),
                  format_count(static_cast<double>(meta_.train_tokens)).c_str(),
                  format_count(static_cast<double>(meta_.val_tokens)).c_str(), masks);
  }

 private:
  const SplitFile& file_of(Split split) const { return splits_[split == Split::kTrain ? 0 : 1]; }

  [[noreturn]] void refuse_id(const SplitFile& source, std::int64_t begin,
                              std::span<const std::int32_t> ids) const {
    // As unsigned, since an id of 2^31 or more has turned negative.
    const auto bad = std::find_if(ids.begin(), ids.end(), [this](std::int32_t id) {
      return static_cast<std::uint32_t>(id) >= static_cast<std::uint32_t>(meta_.vocab_size);
    });
    throw Error(source.path + ": token " + std::to_string(begin + (bad - ids.begin())) + " is " +
                std::to_string(static_cast<std::uint32_t>(*bad)) + ", but the vocabulary has " +
                std::to_string(meta_.vocab_size) + " ids");
  }

  std::string directory_;
  TokenMeta meta_;
  std::array<SplitFile, 2> splits_;
};

}  // namespace

void TokenSource::read_mask(Split, std::int64_t, std::span<std::uint8_t> counts) const {
  std::fill(counts.begin(), counts.end(), std::uint8_t{1});
}

std::unique_ptr<TokenSource> open_token_directory(const std::string& directory) {
  return std::make_unique<TokenDirectory>(directory,
                                          read_token_meta(directory + '/' + std::string(kMetaFile)));
}

}  // namespace dew
