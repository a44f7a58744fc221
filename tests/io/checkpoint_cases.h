// A small state whose every element is a function of its dataset and global index, sharded by any mesh.
#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "comm/layout.h"
#include "io/checkpoint.h"
#include "support/mpi_world.h"
#include "tensor/tensor.h"

namespace dew::testing {

/// A directory of the test's own that every rank of the world sees; removed at the end. Collective.
class SharedDirectory {
 public:
  SharedDirectory() {
    std::string pattern = ::testing::TempDir() + "/checkpoint_XXXXXX";
    if (world().rank() == 0 && mkdtemp(pattern.data()) == nullptr) pattern.clear();
    path_ = world().broadcast(pattern, 0);
  }
  ~SharedDirectory() {
    world().barrier();
    if (world().rank() == 0) std::filesystem::remove_all(path_);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// How a mesh holds every dataset.
struct Sharding {
  MeshShape mesh;
  std::vector<Axis> split_last;  ///< axes that split the last dim
  AxisSet storage;
};

inline Sharding fsdp(int ranks) {
  Sharding sharding;
  sharding.mesh[Axis::kFsdp] = ranks;
  sharding.storage = AxisSet{Axis::kFsdp};
  return sharding;
}
inline Sharding replicas(int ranks) {
  Sharding sharding;
  sharding.mesh[Axis::kReplica] = ranks;
  return sharding;
}
inline Sharding tensor_columns(int ranks) {
  Sharding sharding;
  sharding.mesh[Axis::kTensor] = ranks;
  sharding.split_last = {Axis::kTensor};
  return sharding;
}
/// fsdp 2 x tensor 2.
inline Sharding grid() {
  Sharding sharding = tensor_columns(2);
  sharding.mesh[Axis::kFsdp] = 2;
  sharding.storage = AxisSet{Axis::kFsdp};
  return sharding;
}

struct NamedShape {
  std::string name;
  Shape shape;
};

inline std::vector<NamedShape> small_model() {
  return {{"/params/embed", {33, 7}},
          {"/params/layers.0.attention.wq", {16, 257}},
          {"/params/layers.0.experts", {3, 5, 7}},
          {"/params/norm", {5}},
          {"/params/scale", {}},
          {"/optimizer/layers.0.attention.wq/m", {16, 257}},
          {"/ema/norm", {5}}};
}

/// Not exact in f32, so that conversions show.
inline double element_value(std::size_t dataset, std::int64_t index) {
  return 1000.0 * static_cast<double>(dataset) + static_cast<double>(index) / 3.0;
}

/// This rank's shards under a sharding, and the memory that holds them.
class State {
  // First, so that it outlives the tensors.
  std::unique_ptr<Allocator> allocator_ = std::make_unique<Allocator>(Device{});
  std::unique_ptr<Stream> stream_ = std::make_unique<Stream>(*allocator_);

 public:
  State(const Sharding& sharding, int rank, DType dtype, const std::vector<NamedShape>& model = small_model())
      : dtype_(dtype) {
    const MeshCoord coord = sharding.mesh.coord_of(rank);
    for (const NamedShape& entry : model) {
      std::vector<std::vector<Axis>> split(static_cast<std::size_t>(entry.shape.dims()));
      if (!split.empty()) split.back() = sharding.split_last;
      const Layout layout(entry.shape, split, sharding.storage, {}, sharding.mesh);
      const Range range = layout.storage_range(coord);
      NamedShard shard{entry.name, entry.shape, layout.boxes(coord, range), {}, layout.owns(coord)};
      if (range.size() > 0) shard.local = Tensor::empty({range.size()}, dtype, *stream_, Owner::kWeights);
      std::vector<std::int64_t> indices;
      for (std::int64_t i = range.begin; i < range.end; ++i) indices.push_back(layout.global_index(coord, i));
      shards.push_back(std::move(shard));
      indices_.push_back(std::move(indices));
    }
  }

  void fill() {
    for_each([](double, double wanted) { return wanted; });
  }
  void spoil() {
    for_each([](double, double) { return std::numeric_limits<double>::quiet_NaN(); });
  }
  /// Elements that differ from what `stored` holds of their values.
  std::int64_t wrong(DType stored) {
    std::int64_t count = 0;
    for_each([&](double found, double wanted) {
      if (stored == DType::kF32) wanted = static_cast<float>(wanted);
      if (dtype_ == DType::kF32) wanted = static_cast<float>(wanted);
      count += found == wanted ? 0 : 1;
      return found;
    });
    return count;
  }

  std::vector<NamedShard> shards;

 private:
  template <class F>
  void for_each(F&& f) {
    for (std::size_t d = 0; d < shards.size(); ++d)
      if (!indices_[d].empty())
        visit_float(dtype_, [&](auto zero) {
          auto* local = shards[d].local.template data<decltype(zero)>();
          for (std::size_t i = 0; i < indices_[d].size(); ++i)
            local[i] = static_cast<decltype(zero)>(
                f(static_cast<double>(local[i]), element_value(d, indices_[d][i])));
        });
  }

  DType dtype_;
  std::vector<std::vector<std::int64_t>> indices_;
};

inline RunState run_state(std::int64_t step) {
  RunState state;
  state.step = step;
  state.tokens = step * 1000;
  state.seed = 0xFEDCBA9876543210ull;
  state.epoch = 3;
  state.row = 77;
  state.windows = 257;
  state.resolved_yaml = "run: {name: \"\xC3\xA4\"}\n";
  state.version = "0.1.0";
  return state;
}

/// A log whose lines the test reads.
class LogFile {
 public:
  LogFile() : file_(std::tmpfile()), log(file_, world().rank() == 0) {}
  ~LogFile() { std::fclose(file_); }
  std::string text() {
    std::string all;
    std::rewind(file_);
    for (int c = std::fgetc(file_); c != EOF; c = std::fgetc(file_)) all.push_back(static_cast<char>(c));
    return all;
  }

 private:
  std::FILE* file_;

 public:
  Log log;
};

/// The largest file this process may write, until the end of the scope. Needs no privilege.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    old_handler_ = std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old_);
    rlimit limit = old_;
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &old_);
    std::signal(SIGXFSZ, old_handler_);
  }

 private:
  rlimit old_{};
  void (*old_handler_)(int);
};

inline std::string read_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
inline void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}
inline std::vector<std::string> file_names(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

/// What `f` throws as an error of every rank, or "".
template <class F>
std::string shared_error_of(F&& f) {
  try {
    f();
  } catch (const SharedError& error) {
    return error.what();
  }
  return "";
}

}  // namespace dew::testing
