// From the text of a run description to everything a run is made from, with every error of the file found
// first.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "comm/topology.h"
#include "io/config.h"
#include "io/run_spec.h"
#include "io/token_source.h"
#include "model/registry.h"
#include "train/plan.h"

namespace dew {

struct RunSetup {
  Config config;
  RunSpec spec;
  Topology topology;
  HostGroup ranks;  ///< the job's ranks in mesh order
  MeshShape mesh;
  Model model;
  LayoutRules rules;
  std::vector<AxisSet> groups;  ///< that the mesh must have for the parameters' layouts
  RematPolicy remat;
  std::unique_ptr<TokenSource> source;
  std::vector<double> block_flops;         ///< of each block's forward on one microbatch
  ChainCut cut;                            ///< of the chain on the stages
  SequencePolicy sequence;                 ///< as described; what is to be measured is not yet
  std::set<SequenceCall> attention_calls;  ///< of the model over the sequence axis
  Plan plan;

  EngineParts parts() const { return parts(sequence); }
  /// With a policy of the caller's, which outlives the parts.
  EngineParts parts(const SequencePolicy& policy) const { return {spec, model, rules, remat, cut, policy}; }
};

/// The policy of a setup on its mesh: where the description says `measured`, the candidates of every
/// attention call are timed. Collective over the mesh.
SequencePolicy settled_policy(const RunSetup& setup, const Mesh& mesh, Stream& stream);

/// Reads and checks the whole description on the ranks of `world`: keys, types, ranges, mesh arithmetic,
/// crossings, data files, model, placement audit, and the memory of the plan against what the node has free.
/// Throws one ConfigError with all that is wrong, the same on every rank. Nothing is allocated or written.
/// Collective over `world`.
std::unique_ptr<RunSetup> prepare_run(Config config, const HostGroup& world);

/// The table of every key of a run description, read from an example of each family, as Markdown.
std::string key_table();

}  // namespace dew
