// Runs of the program that draw or list layouts: a folder of tokens with loss masks, and one verified run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "system/run_folder.h"

namespace dew::testing {

/// A token directory in `folder` with a vocabulary of `vocab` and loss masks whose share of targets that
/// count differs widely from window to window (the first alone to all).
std::string write_masked_tokens(const TempFolder& folder, std::int64_t vocab, std::int64_t tokens,
                                std::int64_t seq_len, std::uint64_t seed);

/// Number of the environment variable, or the fallback.
std::int64_t number_from(const char* variable, std::int64_t fallback);

}  // namespace dew::testing
