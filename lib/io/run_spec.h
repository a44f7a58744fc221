// One run as plain structs: everything of the YAML but the model section, which its family reads.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "comm/axis.h"
#include "io/config.h"

namespace dew {

struct RunSection {
  std::string name, dir;
  std::int64_t steps = 0;
  std::uint64_t seed = 0;
};
struct MeshSection {
  std::array<std::optional<std::int64_t>, kAxisCount> extent;  ///< nullopt: auto
  std::array<Axis, kAxisCount> order = kAllAxes;
  AxisSet across_nodes;
  bool hybrid = false;                ///< fsdp is auto and replica is not given: the nodes decide
  std::optional<std::int64_t> ranks;  ///< for a plan only
};
enum class ReduceWhen : std::uint8_t { kStep, kMicrobatch };
struct LayoutSection {
  std::int64_t min_shard = 65536;
  double tolerance = 0.02;
  ReduceWhen reduce = ReduceWhen::kStep;
  std::map<std::string, std::vector<Axis>> rules;
};
enum class PipelineSchedule : std::uint8_t { kGpipe, kOneFOneB, kInterleaved, kZeroBubble };
/// "gpipe", "1f1b", "interleaved", "zero_bubble".
std::string_view name_of(PipelineSchedule schedule);
struct PipelineSection {
  PipelineSchedule schedule = PipelineSchedule::kOneFOneB;
  std::int64_t microbatches = 4;  ///< of a step, while there are stages
  std::int64_t chunks = 2;        ///< of a rank, under the interleaved schedule
  std::vector<std::int64_t>
      layers;  ///< blocks of each virtual stage, in the order of the chain; empty: by cost
};
struct PrecisionSection {
  DType compute = DType::kF32, master = DType::kF32, reduce = DType::kF32;
};
struct DataSection {
  std::string tokens;             ///< a token directory, or
  std::vector<std::string> text;  ///< files read as bytes, or
  std::int64_t sentences = 0;     ///< this many generated sentences
  std::int64_t seq_len = 0, batch = 0;
  double validation = 0.1;  ///< share of text and sentences kept for validation
  /// Whether rows are split into documents; nullopt: where the data name an eos, which the setup of a run
  /// settles.
  std::optional<bool> documents;
};
struct OptimizerSection {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0.01;
  std::optional<double> clip;
};
enum class ScheduleKind : std::uint8_t { kConstant, kLinear, kCosine };
struct ScheduleSection {
  ScheduleKind kind = ScheduleKind::kConstant;
  std::int64_t warmup = 0;
  double final_share = 0;
  std::optional<std::int64_t> steps;  ///< nullopt: run.steps
};
enum class ResumeMode : std::uint8_t { kAuto, kNever, kRequire };
struct CheckpointSection {
  std::optional<std::int64_t> every_steps;  ///< one of the two is set
  std::optional<double> every_seconds;
  std::int64_t keep = 2;
  ResumeMode resume = ResumeMode::kAuto;
};
struct EvalSection {
  std::int64_t every = 0;               ///< 0: at the last step only
  std::optional<std::int64_t> batches;  ///< nullopt: all
};
/// `recompute`: nothing is dropped, whole blocks, or the named sites.
struct RecomputeSection {
  bool full = false;
  std::vector<std::string> sites;
};

struct RunSpec {
  RunSection run;
  MeshSection mesh;
  std::optional<std::int64_t> nodes;  ///< topology.nodes; nullopt: auto
  LayoutSection layout;
  PipelineSection pipeline;
  std::string sequence_exchange;  ///< "auto", "measured" or the name of one
  PrecisionSection precision;
  RecomputeSection recompute;
  DataSection data;
  OptimizerSection optimizer;
  ScheduleSection schedule;
  std::int64_t accumulate = 1;
  std::optional<double> ema;
  CheckpointSection checkpoint;
  EvalSection eval;
  std::int64_t log_every = 10;
  bool check_calls = false;          ///< failure.check_calls
  std::optional<double> peak_flops;  ///< device.peak, FLOP/s of one rank; nullopt: measured
};

/// Reads every section but `model` from the root; errors are noted in the config. Keys and values of the
/// contract that do not work yet are refused by name.
RunSpec read_run_spec(ConfigSection root);

/// The mesh of a spec on this many ranks, on `nodes` equal nodes: `auto` takes what is left. With `fsdp:
/// auto` and no replica given, fsdp fills a node and replica takes the nodes, where the sizes allow. Notes
/// errors with the numbers that do not fit and then returns extents of 1.
MeshShape resolve_mesh(const MeshSection& mesh, int ranks, int nodes, ConfigSection root);

/// Microbatches of a step on a mesh: `accumulate`, times `pipeline.microbatches` where there are stages.
std::int64_t microbatches_of(const RunSpec& spec, const MeshShape& mesh);
/// Chunks of the chain that each stage holds: pipeline.chunks under the interleaved schedule, else 1.
int chunks_of(const RunSpec& spec, const MeshShape& mesh);

/// Notes an error where the global batch does not divide by the row ranks times the microbatches, or the
/// length by the sequence ranks, with the numbers.
void check_batch(const RunSpec& spec, const MeshShape& mesh, ConfigSection root);

}  // namespace dew
