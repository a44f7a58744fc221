// A small run in a folder of its own, and what the program left there.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "io/hdf5_file.h"
#include "system/program.h"

namespace dew::testing {

using Words = std::vector<std::string>;

/// Assignments for f64 everywhere, and those given.
Words f64_with(const Words& assignments = {});

/// One dataset of a checkpoint: the bits of its elements.
struct StoredTensor {
  std::string name;
  Shape shape;
  DType dtype = DType::kF32;
  std::vector<std::byte> bits;
  bool operator==(const StoredTensor& other) const;
};

/// Every dataset of a file, by name.
std::vector<StoredTensor> tensors_of(const std::string& file);
/// The names of the datasets that differ in shape, dtype or any bit, or are in one file only. "" when none.
std::string difference_of(const std::string& left, const std::string& right);

class RunFolder {
 public:
  /// Writes run.yaml's source: a decoder of one layer and width 16 on generated sentences, logged each step;
  /// `extra` are further lines of YAML for sections that it does not use.
  explicit RunFolder(const std::string& extra = {});

  /// The description, --set for each assignment, then the options as they are. Without ranks no launcher.
  Outcome train(int ranks, const Words& assignments = {}, const Words& options = {}) const;
  Launch launch(int ranks, const Words& assignments = {}, const Words& options = {}) const;

  const std::string& yaml() const { return yaml_; }
  std::string dir() const { return folder_.file("run"); }
  std::string file(std::string_view name) const { return folder_.file(name); }
  bool exists() const { return std::filesystem::exists(dir()); }
  std::string checkpoint(std::int64_t step) const;
  Words checkpoint_names() const;  ///< everything in checkpoints/, sorted
  std::vector<nlohmann::json> metrics() const;
  std::vector<double> losses() const;
  const TempFolder& folder() const { return folder_; }

 private:
  TempFolder folder_;
  std::string yaml_;
};

/// The largest |a - b| / |b|; infinity where the counts differ.
double relative_distance(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace dew::testing
