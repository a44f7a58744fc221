#include "system/layout_cases.h"

#include <cstdlib>

#include "base/philox.h"

namespace dew::testing {

std::string write_masked_tokens(const TempFolder& folder, std::int64_t vocab, std::int64_t tokens,
                                std::int64_t seq_len, std::uint64_t seed) {
  std::string ids, mask;
  for (std::int64_t i = 0; i < tokens; ++i) {
    const PhiloxBlock random = philox(seed, static_cast<std::uint64_t>(i), 0);
    const auto id = static_cast<std::uint32_t>(random[0] % static_cast<std::uint64_t>(vocab));
    ids += static_cast<char>(id & 0xFF);
    ids += static_cast<char>(id >> 8);
    // Of a window's targets the first alone, few or all count.
    const PhiloxBlock window = philox(seed, static_cast<std::uint64_t>((i + seq_len - 1) / seq_len), 1);
    const bool first = i % seq_len == 1 % seq_len, few = random[1] % 5 == 0;
    const std::uint32_t kind = window[0] % 3;
    mask += static_cast<char>(first || kind == 2 || (kind == 1 && few) ? 1 : 0);
  }
  folder.write("train.bin", ids);
  folder.write("val.bin", ids);
  folder.write("train.mask", mask);
  folder.write("val.mask", mask);
  folder.write("meta.json", R"({"tokenizer": "drawn", "vocab_size": )" + std::to_string(vocab) +
                                R"(, "dtype": "uint16", "train_tokens": )" + std::to_string(tokens) +
                                R"(, "val_tokens": )" + std::to_string(tokens) + R"(, "eos_id": 0})");
  return folder.file(".");
}

std::int64_t number_from(const char* variable, std::int64_t fallback) {
  const char* text = std::getenv(variable);
  return text == nullptr ? fallback : std::strtoll(text, nullptr, 10);
}

}  // namespace dew::testing
