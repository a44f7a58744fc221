#include "train/run_setup.h"

#include <algorithm>

#include "base/text.h"
#include "comm/agreement.h"
#include "io/config_table.h"

namespace dew {
namespace {

std::unique_ptr<TokenSource> open_source(const RunSpec& spec) {
  if (!spec.data.tokens.empty()) return open_token_directory(spec.data.tokens);
  if (!spec.data.text.empty()) return open_text_files(spec.data.text, spec.data.validation);
  return generate_sentences(spec.data.sentences, spec.run.seed, spec.data.validation);
}

bool names_a_source(const RunSpec& spec) {
  return !spec.data.tokens.empty() || !spec.data.text.empty() || spec.data.sentences > 0;
}

void check_windows(const RunSetup& setup, ConfigSection root) {
  const std::int64_t tokens = setup.source->tokens(Split::kTrain);
  if (window_count(tokens, setup.spec.data.seq_len) < 1)
    root.error("data.seq_len",
               format("the training data hold %lld tokens, fewer than one window of seq_len + 1",
                      static_cast<long long>(tokens)));
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
  const int local_ranks = topology.rehearsed ? topology.world_size : topology.local_size;
  const std::string mine = memory_error(setup.plan, local_ranks, available_memory());
  const std::string shared = first_failure(setup.ranks, [&mine] {
    if (!mine.empty()) throw Error(mine);
  });
  if (!shared.empty()) root.error("model", shared);
}

}  // namespace

std::unique_ptr<RunSetup> prepare_run(Config config, const HostGroup& world) {
  ConfigSection root = config.root();
  RunSpec spec = read_run_spec(root);
  Topology topology = Topology::discover(world, static_cast<int>(spec.nodes.value_or(0)));
  HostGroup ranks = world.split(0, topology.world_rank);
  auto setup = std::unique_ptr<RunSetup>(new RunSetup{
      std::move(config), std::move(spec), std::move(topology), std::move(ranks), {}, {}, {}, {}, {}, {}});
  if (names_a_source(setup->spec)) {
    RunSetup& s = *setup;
    const std::string failure = first_failure(s.ranks, [&s] { s.source = open_source(s.spec); });
    if (!failure.empty()) s.config.note(failure);
    if (!failure.empty()) s.source.reset();
  }
  if (setup->source && !root.faulty("data")) check_windows(*setup, root);
  setup->model =
      build_model(root, {setup->source ? setup->source->vocab_size() : 0, setup->spec.data.seq_len});
  setup->mesh = resolve_mesh(setup->spec.mesh, setup->ranks.size(), root);
  if (!root.faulty("mesh")) {
    if (!root.faulty("data.batch") && !root.faulty("accumulate")) check_batch(setup->spec, setup->mesh, root);
    check_mesh(*setup, root);
  }
  setup->rules = make_layout_rules(setup->spec.layout, root);
  check_remat(*setup, root);
  setup->remat.whole_blocks = setup->spec.recompute.full;
  setup->remat.sites.insert(setup->spec.recompute.sites.begin(), setup->spec.recompute.sites.end());
  setup->config.throw_errors();

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
