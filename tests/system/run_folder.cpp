#include "system/run_folder.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

#include "io/checkpoint.h"

namespace dew::testing {

Words f64_with(const Words& assignments) {
  Words words{"precision.compute=f64", "precision.master=f64", "precision.reduce=f64"};
  words.insert(words.end(), assignments.begin(), assignments.end());
  return words;
}

bool StoredTensor::operator==(const StoredTensor& other) const {
  return name == other.name && shape == other.shape && dtype == other.dtype && bits == other.bits;
}

std::vector<StoredTensor> tensors_of(const std::string& file) {
  const Hdf5File hdf5 = Hdf5File::open(file);
  std::vector<StoredTensor> tensors;
  for (const std::string& name : hdf5.names()) {
    const bool moment = name.ends_with("/m") || name.ends_with("/v");
    const bool parameter = name.starts_with("/params/") || name.starts_with("/ema/");
    if (!(parameter || (name.starts_with("/optimizer/") && moment))) continue;
    const Hdf5Dataset dataset = hdf5.dataset(name);
    StoredTensor tensor{name, dataset.shape(), dataset.dtype(), {}};
    tensor.bits.resize(static_cast<std::size_t>(dataset.shape().numel()) * size_of(dataset.dtype()));
    dataset.read(
        {dataset.shape(), std::vector<std::int64_t>(static_cast<std::size_t>(dataset.shape().dims()), 0),
         dataset.shape()},
        tensor.bits.data());
    tensors.push_back(std::move(tensor));
  }
  std::sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return tensors;
}

std::string difference_of(const std::string& left, const std::string& right) {
  const std::vector<StoredTensor> a = tensors_of(left), b = tensors_of(right);
  if (a.empty()) return "no dataset in " + left;
  if (a.size() != b.size())
    return std::to_string(a.size()) + " against " + std::to_string(b.size()) + " datasets";
  std::string names;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!(a[i] == b[i])) names += a[i].name + ' ';
  return names;
}

RunFolder::RunFolder(const std::string& extra) {
  yaml_ = folder_.write("tiny.yaml", "run: {name: tiny, dir: " + dir() + ", steps: 4, seed: 7}\n" +
                                         "layout: {min_shard: 64}\n"
                                         "model: {family: decoder, layers: 1, width: 16, heads: 2, mlp: 32}\n"
                                         "data: {sentences: 200, seq_len: 16, batch: 12, validation: 0.1}\n"
                                         "device: {peak: 1e9}\n"
                                         "log: {every: 1}\n" +
                                         extra);
}

Launch RunFolder::launch(int ranks, const Words& assignments, const Words& options) const {
  Launch launch;
  launch.ranks = ranks;
  launch.arguments.push_back(yaml_);
  for (const std::string& assignment : assignments) {
    launch.arguments.emplace_back("--set");
    launch.arguments.push_back(assignment);
  }
  launch.arguments.insert(launch.arguments.end(), options.begin(), options.end());
  return launch;
}

Outcome RunFolder::train(int ranks, const Words& assignments, const Words& options) const {
  return testing::train(launch(ranks, assignments, options));
}

std::string RunFolder::checkpoint(std::int64_t step) const {
  return dir() + "/checkpoints/" + checkpoint_name(step);
}

Words RunFolder::checkpoint_names() const {
  Words names;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(dir() + "/checkpoints", none))
    names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<nlohmann::json> RunFolder::metrics() const {
  std::istringstream text(read_file(dir() + "/metrics.jsonl"));
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

std::vector<double> RunFolder::losses() const {
  std::vector<double> losses;
  for (const auto& line : metrics())
    if (line.contains("loss")) losses.push_back(line["loss"]);
  return losses;
}

double relative_distance(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size() || a.empty()) return std::numeric_limits<double>::infinity();
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(a[i] - b[i]) / std::abs(b[i]));
  return worst;
}

}  // namespace dew::testing
