// Checkpoint speed: MB/s (10^6 bytes) of element data until every rank has written and closed, until the file
// is durable under its name, and until it is restored; beside it one plain stream of writes of the same bytes
// by rank 0.
//   mpirun -np N bench_checkpoint [MB [DIRECTORY [column]]]
// f32 weights of 1024 x 4096; `column` splits their columns over the ranks instead of flat chunks.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/timer.h"
#include "comm/mpi_env.h"
#include "io/checkpoint_format.h"
#include "io/checkpoint_writer.h"
#include "io/posix_file.h"

namespace {

using namespace dew;

constexpr std::int64_t kRows = 1024, kColumns = 4096;

std::vector<NamedShard> make_shards(std::int64_t count, bool column, const HostGroup& group, Stream& stream) {
  MeshShape mesh;
  mesh[column ? Axis::kTensor : Axis::kFsdp] = group.size();
  std::vector<std::vector<Axis>> split(2);
  if (column) split[1] = {Axis::kTensor};
  const Layout layout({kRows, kColumns}, split, column ? AxisSet{} : AxisSet{Axis::kFsdp}, {}, mesh);
  const MeshCoord coord = mesh.coord_of(group.rank());
  const Range range = layout.storage_range(coord);
  std::vector<NamedShard> shards;
  for (std::int64_t i = 0; i < count; ++i) {
    Tensor local = Tensor::empty({range.size()}, DType::kF32, stream, Owner::kWeights);
    for (std::int64_t e = 0; e < range.size(); ++e) local.data<float>()[e] = static_cast<float>(e + i);
    shards.push_back({"/params/layers." + std::to_string(i) + ".weight", layout.global(),
                      layout.boxes(coord, range), local, layout.owns(coord)});
  }
  return shards;
}

/// Seconds for one plain stream of the same bytes to close, and to durable.
std::pair<double, double> plain_stream(const std::string& path, std::int64_t bytes) {
  const std::vector<char> buffer(16 << 20, 'x');
  const double start = steady_seconds();
  PosixFile file = PosixFile::create(path);
  for (std::int64_t at = 0; at < bytes; at += static_cast<std::int64_t>(buffer.size()))
    file.write_at(at, buffer.data(), std::min(bytes - at, static_cast<std::int64_t>(buffer.size())));
  const double closed = steady_seconds() - start;
  file.sync();
  const double durable = steady_seconds() - start;
  std::filesystem::remove(path);
  return {closed, durable};
}

void measure(std::span<const NamedShard> shards, const std::string& directory, const HostGroup& group) {
  RunState state;
  const Log log(stdout, group.rank() == 0);
  double hash = 0, bytes = 0;
  {
    ScopeTimer timer(hash);
    std::uint64_t sum = 0;
    for (const NamedShard& shard : shards) {
      sum += hash_shard(shard);
      bytes += static_cast<double>(shard.local.bytes());
    }
    if (sum == 0) std::puts("sum");  // uses the result
  }
  group.barrier();
  const double start = steady_seconds();
  CheckpointWriter writer(directory, shards, state, group);
  writer.prepare();
  const double prepared = steady_seconds() - start;
  writer.write();
  const double closed = steady_seconds() - start;
  writer.sync();
  writer.publish();
  const double durable = steady_seconds() - start;
  double restored = 0;
  {
    ScopeTimer timer(restored);
    if (!restore_newest(directory, shards, {}, group, log)) std::puts("nothing restored");
  }
  if (group.rank() != 0) return;
  const double megabytes = static_cast<double>(writer.bytes()) / 1e6;
  const auto [plain_closed, plain_durable] = plain_stream(directory + "/plain", writer.bytes());
  std::printf(
      "ranks %d  %.0f MB  hash %.2f GB/s a rank  prepare %.3f s  closed %.0f MB/s  durable %.0f MB/s  "
      "restored %.0f "
      "MB/s  | plain stream closed %.0f durable %.0f MB/s\n",
      group.size(), megabytes, bytes / 1e9 / hash, prepared, megabytes / closed, megabytes / durable,
      megabytes / restored, megabytes / plain_closed, megabytes / plain_durable);
}

}  // namespace

int main(int argc, char** argv) {
  prepare_launch();
  const MpiEnv mpi(argc, argv);
  const double megabytes = argc > 1 ? std::atof(argv[1]) : 512;
  const std::string directory = argc > 2 ? argv[2] : "bench_checkpoint.tmp";
  const bool column = argc > 3 && std::string(argv[3]) == "column";
  Allocator allocator{Device{}};
  Stream stream(allocator);
  const std::int64_t count = std::llround(megabytes * 1e6 / (kRows * kColumns * 4));
  const std::vector<NamedShard> shards =
      make_shards(std::max<std::int64_t>(1, count), column, mpi.world(), stream);
  for (int repeat = 0; repeat < 3; ++repeat) measure(shards, directory, mpi.world());
  mpi.world().barrier();
  if (mpi.world().rank() == 0) std::filesystem::remove_all(directory);
  return 0;
}
