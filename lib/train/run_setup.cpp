#include "train/run_setup.h"

#include <algorithm>

#include "autograd/sequence_timing.h"
#include "base/philox.h"
#include "base/text.h"
#include "comm/agreement.h"
#include "io/config_table.h"
#include "train/free_memory.h"
#include "train/schedules.h"

namespace dew {
namespace {

/// Generated text lies in the memory of every rank, before the plan can count anything.
void check_sentences(std::int64_t count, int local_ranks) {
  constexpr double kBytes = 100;  // of a sentence while the text grows
  const double needed = kBytes * static_cast<double>(count) * local_ranks;
  const auto available = static_cast<double>(free_memory());
  if (needed > available)
    throw ConfigError(format("data.sentences: %lld: may take %s on this node, and %s are free",
                             static_cast<long long>(count), format_bytes(needed).c_str(),
                             format_bytes(available).c_str()));
}

std::unique_ptr<TokenSource> open_source(const RunSpec& spec, int local_ranks) {
  if (!spec.data.tokens.empty()) return open_token_directory(spec.data.tokens);
  if (!spec.data.text.empty()) return open_text_files(spec.data.text, spec.data.validation);
  check_sentences(spec.data.sentences, local_ranks);
  return generate_sentences(spec.data.sentences, spec.run.seed, spec.data.validation);
}

bool names_a_source(const RunSpec& spec) {
  return !spec.data.tokens.empty() || !spec.data.text.empty() || spec.data.sentences > 0;
}

void check_windows(const RunSetup& setup, ConfigSection root) {
  const auto too_few = [&](Split split) {
    const std::int64_t tokens = setup.source->tokens(split);
    return tokens > 0 && window_count(tokens, setup.spec.data.seq_len) < 1;
  };
  const auto message = [&](const char* what, Split split) {
    return format("the %s data hold %lld tokens, fewer than one window of seq_len + 1", what,
                  static_cast<long long>(setup.source->tokens(split)));
  };
  if (setup.source->tokens(Split::kTrain) == 0 || too_few(Split::kTrain))
    root.error("data.seq_len", message("training", Split::kTrain));
  if (too_few(Split::kValidation)) root.error("data.validation", message("validation", Split::kValidation));
}

/// Settles `data.pack: auto`, and refuses documents that nothing ends.
void settle_pack(RunSetup& setup, ConfigSection root) {
  const bool has_eos = setup.source->eos_id().has_value();
  if (setup.spec.data.documents.value_or(false) && !has_eos)
    root.section({"data", "", ""})
        .error("pack",
               "the data name no id that ends a document (eos_id of meta.json); accepted: auto, windows");
  setup.spec.data.documents = setup.spec.data.documents.value_or(has_eos);
}

/// A hash of some hundred short pieces of a split, tokens and loss mask, spread evenly over it.
std::uint64_t sample_of(const TokenSource& source, Split split) {
  constexpr std::int64_t kPieces = 256, kLength = 64;
  const std::int64_t tokens = source.tokens(split), length = std::min(kLength, tokens);
  std::vector<std::int32_t> ids(static_cast<std::size_t>(length));
  std::vector<std::uint8_t> counts(static_cast<std::size_t>(length));
  std::uint64_t hash = static_cast<std::uint64_t>(tokens);
  for (std::int64_t i = 0; i < (length > 0 ? kPieces : 0); ++i) {
    const std::int64_t begin = static_cast<std::int64_t>(
        static_cast<double>(tokens - length) * static_cast<double>(i) / static_cast<double>(kPieces - 1));
    source.read(split, begin, ids);
    source.read_mask(split, begin, counts);
    for (std::size_t j = 0; j < ids.size(); ++j)
      hash = mix64(hash ^ (static_cast<std::uint64_t>(static_cast<std::uint32_t>(ids[j])) << 8 | counts[j]));
  }
  return hash;
}

/// Every rank must see the same data: node-local copies may differ, and then each rank would shuffle its own.
void check_same_data(RunSetup& setup) {
  const TokenSource& source = *setup.source;
  std::uint64_t sample = 0;
  const std::string failure = first_failure(setup.ranks, [&source, &sample] {
    sample = sample_of(source, Split::kTrain) ^ mix64(sample_of(source, Split::kValidation));
  });
  if (!failure.empty()) {
    setup.config.note("data: " + failure);
    setup.source.reset();
    return;
  }
  const std::string mine = format(
      "%lld training tokens, %lld validation tokens, vocabulary %lld, eos %d, and a sample of tokens and "
      "masks "
      "%016llx",
      static_cast<long long>(source.tokens(Split::kTrain)),
      static_cast<long long>(source.tokens(Split::kValidation)), static_cast<long long>(source.vocab_size()),
      source.eos_id().value_or(-1), static_cast<unsigned long long>(sample));
  const std::vector<std::string> all = setup.ranks.gather(mine);
  const auto other =
      std::find_if(all.begin(), all.end(), [&](const auto& text) { return text != all.front(); });
  if (other == all.end()) return;
  setup.config.note(format("data: differs between ranks: rank 0 sees %s; rank %zu sees %s",
                           all.front().c_str(), static_cast<std::size_t>(other - all.begin()),
                           other->c_str()));
  setup.source.reset();
}

void check_remat(const RunSetup& setup, ConfigSection root) {
  for (const std::string& site : setup.spec.recompute.sites) {
    const auto& known = setup.model.remat_sites;
    if (std::find(known.begin(), known.end(), site) != known.end()) continue;
    std::string accepted;
    for (const std::string& name : known) accepted += (accepted.empty() ? "" : ", ") + name;
    root.error("recompute", "unknown site " + site + "; accepted: none, full, or a list of " + accepted);
  }
}

void check_mesh(const RunSetup& setup, ConfigSection root) {
  for (const std::string& message : crossing_errors(setup.mesh, setup.topology, setup.spec.mesh.across_nodes))
    root.error("mesh.across_nodes", message);
}

void check_placement(const RunSetup& setup, ConfigSection root) {
  const PlacementAudit& audit = setup.plan.audit;
  const double share = static_cast<double>(audit.whole_by_rule) /
                       static_cast<double>(std::max<std::int64_t>(1, audit.elements));
  if (share > setup.spec.layout.tolerance)
    root.error("layout.tolerance",
               format("the rules keep %s of %s elements whole (%.3f of the model, in parameters of "
                      "at least min_shard elements); change layout.rules, or accept %.3f",
                      format_count(static_cast<double>(audit.whole_by_rule)).c_str(),
                      format_count(static_cast<double>(audit.elements)).c_str(), share, share));
}

void check_memory(const RunSetup& setup, ConfigSection root) {
  const Topology& topology = setup.topology;
  std::vector<int> stages;  // of the ranks on this machine
  for (int rank = 0; rank < topology.world_size; ++rank)
    if (topology.rehearsed || topology.node_of[static_cast<std::size_t>(rank)] == topology.node)
      stages.push_back(setup.mesh.coord_of(rank)[static_cast<std::size_t>(Axis::kStage)]);
  const std::string mine = memory_error(setup.plan, stages, free_memory());
  const std::string shared = first_failure(setup.ranks, [&mine] {
    if (!mine.empty()) throw Error(mine);
  });
  if (!shared.empty()) root.error("model", shared);
}

/// The topology the description asks for. Notes an error for nodes that do not divide, and then takes what is
/// there.
Topology find_topology(const RunSpec& spec, const HostGroup& world, ConfigSection& root) {
  const std::int64_t nodes = spec.nodes.value_or(0);
  const bool divides = nodes == 0 || world.size() % nodes == 0;
  if (!divides)
    root.error("topology.nodes", format("does not divide the %d ranks into equal nodes", world.size()));
  return Topology::discover(world, divides ? static_cast<int>(nodes) : 0);
}

/// Opens the data on every rank; what is wrong is noted, the same on all ranks.
void open_data(RunSetup& setup, ConfigSection& root) {
  if (!names_a_source(setup.spec)) return;
  const Topology& topology = setup.topology;
  const int local_ranks =
      topology.rehearsed
          ? topology.world_size
          : static_cast<int>(std::count(topology.node_of.begin(), topology.node_of.end(), topology.node));
  const std::string failure =
      first_failure(setup.ranks, [&] { setup.source = open_source(setup.spec, local_ranks); });
  if (!failure.empty()) {
    setup.config.note(failure);
    setup.source.reset();
    return;
  }
  check_same_data(setup);
  if (setup.source) settle_pack(setup, root);
  if (setup.source && !root.faulty("data")) check_windows(setup, root);
}

void check_family(const RunSetup& setup, ConfigSection& root) {
  for (const ModelFamily& family : model_families())
    if (family.name == setup.model.family)
      for (Axis axis : kAllAxes)
        if (setup.mesh[axis] > 1 && !family.supported.has(axis))
          root.error("mesh." + std::string(name_of(axis)),
                     "the family " + std::string(family.name) + " cannot split over it; accepted: 1");
}

void check_split(const RunSetup& setup, ConfigSection& root) {
  for (const SplitError& error : split_errors(setup.model.params(), setup.rules, setup.mesh))
    root.error(error.key, error.message);
}

/// Sizes whose plan would take minutes, or whose bytes would pass 64 bits, before it could be refused for
/// them.
void check_sizes(const RunSetup& setup, ConfigSection& root) {
  constexpr std::int64_t kMostTokens = 1 << 24, kMostVisits = 1 << 16;
  constexpr double kBytesAnElement = 64, kMostBytes = 0x1p60;  // more than an element takes in all its uses
  const std::int64_t microbatches = microbatches_of(setup.spec, setup.mesh);
  const auto blocks = static_cast<std::int64_t>(setup.model.chain.size());
  const bool staged = setup.mesh[Axis::kStage] > 1;
  if (microbatches > kMostVisits / blocks)
    root.error(
        staged ? "pipeline.microbatches" : "accumulate",
        format("gives %lld microbatches over the %lld blocks of the model; accepted: a product of up to "
               "%lld",
               static_cast<long long>(microbatches), static_cast<long long>(blocks),
               static_cast<long long>(kMostVisits)));
  const std::int64_t rows = setup.spec.data.batch / (setup.mesh.size_of(kRowAxes) * microbatches);
  const std::int64_t length = setup.spec.data.seq_len / setup.mesh[Axis::kSequence];
  if (rows > kMostTokens / length)
    root.error(
        "data.batch",
        format("gives a rank %lld rows of %lld positions at once; accepted: up to %lld tokens, so more "
               "microbatches or ranks",
               static_cast<long long>(rows), static_cast<long long>(length),
               static_cast<long long>(kMostTokens)));
  double widths = 0;
  for (const ParamSpec& param : setup.model.params())
    for (const std::int64_t extent : param.shape.extents()) widths += static_cast<double>(extent);
  const double bytes = kBytesAnElement * widths * static_cast<double>(setup.spec.data.batch) *
                       static_cast<double>(setup.spec.data.seq_len);
  if (bytes > kMostBytes)
    root.error("model", format("with data.batch %lld and data.seq_len %lld may take %.2g bytes; accepted: up "
                               "to %.2g",
                               static_cast<long long>(setup.spec.data.batch),
                               static_cast<long long>(setup.spec.data.seq_len), bytes, kMostBytes));
}

/// Cuts the chain over the stages, and asks every attention call how it meets other ranks' positions.
void place_blocks(RunSetup& setup, ConfigSection& root) {
  if (const auto named = exchange_named(setup.spec.sequence_exchange)) setup.sequence.named = named;
  const int stages = setup.mesh[Axis::kStage], chunks = chunks_of(setup.spec, setup.mesh);
  const int blocks = static_cast<int>(setup.model.chain.size());
  const PipelineSection& pipeline = setup.spec.pipeline;
  const PipelineShape shape{stages, static_cast<int>(microbatches_of(setup.spec, setup.mesh)), chunks};
  setup.cut = whole_chain(blocks);
  if (stages > 1) {
    const std::string schedule = schedule_obstacle(pipeline.schedule, shape);
    if (!schedule.empty()) root.error("pipeline.schedule", schedule);
    const std::string cut = cut_obstacle(pipeline.layers, blocks, stages, chunks);
    if (!cut.empty()) root.error(pipeline.layers.empty() ? "mesh.stage" : "pipeline.layers", cut);
    if (!schedule.empty() || !cut.empty()) return;
  }
  if (root.faulty("model")) return;
  const ChainSurvey survey =
      survey_chain(setup.model, setup.rules, setup.spec, setup.sequence, setup.mesh, MeshCoord{});
  setup.attention_calls = survey.attention_calls;
  if (stages == 1) return;
  for (const BlockSurvey& block : survey.blocks) setup.block_flops.push_back(block.flops);
  setup.cut = pipeline.layers.empty() ? cut_by_cost(setup.block_flops, stages, chunks)
                                      : cut_as_listed(pipeline.layers, stages, chunks);
}

}  // namespace

SequencePolicy settled_policy(const RunSetup& setup, const Mesh& mesh, Stream& stream) {
  SequencePolicy policy = setup.sequence;
  if (setup.spec.sequence_exchange == "measured")
    policy.measured = time_exchanges(setup.attention_calls, mesh, setup.spec.precision.compute, stream);
  return policy;
}

std::unique_ptr<RunSetup> prepare_run(Config config, const HostGroup& world) {
  ConfigSection root = config.root();
  RunSpec spec = read_run_spec(root);
  Topology topology = find_topology(spec, world, root);
  HostGroup ranks = world.split(0, topology.world_rank);
  auto setup = std::unique_ptr<RunSetup>(new RunSetup{std::move(config),
                                                      std::move(spec),
                                                      std::move(topology),
                                                      std::move(ranks),
                                                      {},
                                                      {},
                                                      {},
                                                      {},
                                                      {},
                                                      {},
                                                      {},
                                                      {},
                                                      {},
                                                      {},
                                                      {}});
  open_data(*setup, root);
  setup->model =
      build_model(root, {setup->source ? setup->source->vocab_size() : 0, setup->spec.data.seq_len});
  setup->mesh = resolve_mesh(setup->spec.mesh, setup->ranks.size(),
                             setup->topology.equal_nodes() ? setup->topology.node_count : 1, root);
  if (!root.faulty("mesh")) {
    if (!root.faulty("data.batch") && !root.faulty("accumulate")) check_batch(setup->spec, setup->mesh, root);
    if (!root.faulty("topology")) check_mesh(*setup, root);
    check_family(*setup, root);
  }
  setup->rules = make_layout_rules(setup->spec.layout, root);
  check_remat(*setup, root);
  setup->remat.whole_blocks = setup->spec.recompute.full;
  setup->remat.sites.insert(setup->spec.recompute.sites.begin(), setup->spec.recompute.sites.end());
  setup->config.throw_errors();

  check_sizes(*setup, root);
  setup->config.throw_errors();
  check_split(*setup, root);
  place_blocks(*setup, root);
  setup->config.throw_errors();
  setup->groups = groups_of(setup->model.params(), setup->rules, setup->mesh);
  setup->plan = make_plan(setup->parts(), setup->mesh);
  check_placement(*setup, root);
  check_memory(*setup, root);
  setup->config.throw_errors();
  return setup;
}

std::string key_table() {
  Config config = Config::from_text("{model: {family: decoder}, data: {sentences: 100}}", "defaults");
  const RunSpec spec = read_run_spec(config.root());
  build_model(config.root(), {256, spec.data.seq_len});
  return markdown_table(config.table());
}

}  // namespace dew
