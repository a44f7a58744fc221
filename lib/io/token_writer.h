// Makes token directories. Holds one buffer of the corpus in memory at a time.
#pragma once

#include <string>
#include <vector>

#include "io/token_meta.h"

namespace dew {

/// What is written: `files` one after the other, byte by byte, with nothing between them (bytes have no id
/// that ends a document); the last `validation` share goes to val.bin.
struct ByteCorpus {
  std::vector<std::string> files;
  double validation = 0.1;
};

/// Writes `directory` (made when missing): temporary names first, then renames, meta.json last, so that a
/// directory with a meta.json is whole. With `replace`, token files that are there give way; without it they
/// are refused. Throws ConfigError, before anything is written, for an input that is missing, empty or no
/// regular file, a share outside [0, 1) and token files in the way; Error when reading or writing fails, the
/// temporary files then being removed.
TokenMeta write_byte_tokens(const ByteCorpus& corpus, const std::string& directory, bool replace);

}  // namespace dew
