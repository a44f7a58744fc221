// The decoder with its width split over the tensor axis: loss, every gradient and the traffic of a dry run.
#include <gtest/gtest.h>

#include "support/mpi_world.h"
#include "support/tiny_models.h"

namespace dew::test {
namespace {

using dew::testing::world;
using Rules = std::map<std::string, std::vector<Axis>>;
using Sites = std::set<std::string, std::less<>>;

struct TensorCase {
  std::string keys;
  std::int64_t heads, vocab;
  std::int64_t samples = 2, length = 5;
};

std::string heads_of(int heads, int kv_heads) {
  return "heads: " + std::to_string(heads) + ", kv_heads: " + std::to_string(kv_heads) + ", ";
}

const std::string kSizes = "layers: 2, width: 10, head_width: 2, mlp: 12, head_chunk: 3, ";

const std::vector<TensorCase> kCases{
    {kSizes + heads_of(4, 2) + "vocab: 11", 4, 11},
    {kSizes + heads_of(4, 4) + "vocab: 11, tied: true, window: 3", 4, 11},
    {kSizes + heads_of(6, 3) + "vocab: 3", 6, 3, 1, 5},
    {kSizes + heads_of(6, 1) + "vocab: 3, tied: true", 6, 3, 1, 1},
    {kSizes + heads_of(12, 4) + "vocab: 11, window: [2, 0]", 12, 11, 3, 4},
    {kSizes + heads_of(12, 2) + "vocab: 12, tied: true", 12, 12, 2, 6},
};

const std::vector<Rules> kRules{
    {},
    {{"mlp", {}}},
    {{"heads", {}}},
    {{"vocab", {}}},
    {{"kv_heads", {}}},
    {{"heads", {}}, {"kv_heads", {}}, {"mlp", {}}, {"vocab", {}}},
};

MeshShape mesh_of(std::initializer_list<std::pair<Axis, int>> extents) {
  MeshShape mesh;
  for (const auto& [axis, extent] : extents) mesh[axis] = extent;
  return mesh;
}

std::string name_of(const TensorCase& c, const Rules& rules) {
  std::string name = c.keys;
  for (const auto& [rule, axes] : rules) name += " " + rule + ": []";
  return name;
}

/// Loss and gradients of the whole batch.
struct Result {
  double loss = 0;
  std::map<std::string, Numbers> gradients;
};

Result alone(const TensorCase& c, const Model& model) {
  Workbench bench;
  ChainRun run(bench, model);
  Result result;
  result.loss = run.differentiate(microbatch_of(bench, c.samples, c.length, c.vocab));
  for (const auto& [name, gradient] : run.gradients) result.gradients[name] = numbers(gradient);
  return result;
}

/// The sum over the world of what each rank has, on every axis that sums or splits; an axis on which the
/// layout does neither must not change the gradient.
std::map<std::string, Numbers> joined_gradients(const ChainRun& run, const Mesh& mesh) {
  std::map<std::string, Numbers> all;
  for (const auto& [name, gradient] : run.gradients) {
    const Layout& layout = run.layout(name);
    const AxisSet joined = layout.split_axes() | layout.storage_axes() | layout.reduce_axes();
    bool counts = true;
    for (Axis axis : kAllAxes) counts = counts && (joined.has(axis) || mesh.coord(axis) == 0);
    Numbers whole(static_cast<std::size_t>(layout.global().numel()), 0.0);
    const Numbers part = numbers(gradient);
    for (std::size_t i = 0; i < part.size() && counts; ++i)
      whole[static_cast<std::size_t>(layout.global_index(mesh.coord(), static_cast<std::int64_t>(i)))] =
          part[i];
    world().sum(whole);
    all[name] = std::move(whole);
  }
  return all;
}

double joined_loss(const ChainRun& run, double loss, const Mesh& mesh) {
  const AxisSet partial = run.placements.axes_that_are(Placement::kPartial);
  EXPECT_TRUE(run.placements.axes_that_are(Placement::kSharded).empty());
  bool counts = true;
  for (Axis axis : kAllAxes) counts = counts && (partial.has(axis) || mesh.coord(axis) == 0);
  std::array<double, 1> sum{counts ? loss : 0};
  world().sum(sum);
  return sum[0];
}

double norm(const Numbers& x) {
  double sum = 0;
  for (double value : x) sum += value * value;
  return std::sqrt(sum);
}

/// The bound of docs on correctness: relative to the leaf, or to its share of all gradients.
void expect_same(const std::map<std::string, Numbers>& actual,
                 const std::map<std::string, Numbers>& expected) {
  constexpr double kRelative = 1e-11;
  double squares = 0, elements = 0;
  for (const auto& [name, gradient] : expected) {
    squares += norm(gradient) * norm(gradient);
    elements += static_cast<double>(gradient.size());
  }
  ASSERT_EQ(actual.size(), expected.size());
  for (const auto& [name, gradient] : expected) {
    Numbers difference = actual.at(name);
    ASSERT_EQ(difference.size(), gradient.size()) << name;
    for (std::size_t i = 0; i < gradient.size(); ++i) difference[i] -= gradient[i];
    const double share = std::sqrt(squares * static_cast<double>(gradient.size()) / elements);
    EXPECT_LE(norm(difference), kRelative * std::max(norm(gradient), share)) << name;
  }
}

void expect_one_ranks_numbers(const TensorCase& c, const Rules& rules, const Sites& sites) {
  constexpr double kRelative = 1e-12;
  const Model model = decoder_of(c.keys);
  const Result expected = alone(c, model);
  Workbench bench;
  const Mesh mesh(world(), mesh_of({{Axis::kTensor, world().size()}}), {});
  ChainRun run(bench, model, mesh, layout_rules_of(rules));

  const double loss = run.differentiate(microbatch_of(bench, c.samples, c.length, c.vocab), {false, sites});

  EXPECT_NEAR(joined_loss(run, loss, mesh), expected.loss, kRelative * expected.loss);
  if (run.placements[Axis::kTensor] == Placement::kReplicated) {
    EXPECT_NEAR(loss, expected.loss, kRelative * expected.loss) << "on every rank";
  }
  expect_same(joined_gradients(run, mesh), expected.gradients);
  const double evaluated = run.evaluate(microbatch_of(bench, c.samples, c.length, c.vocab));
  EXPECT_NEAR(joined_loss(run, evaluated, mesh), expected.loss, kRelative * expected.loss);
}

bool fits(const TensorCase& c) {
  return c.heads % world().size() == 0;
}

TEST(TensorAxis, GivesOneRanksLossAndGradientsUnderAnyRules) {
  for (const TensorCase& c : kCases) {
    for (const Rules& rules : kRules) {
      if (!fits(c) && !rules.contains("heads")) continue;
      SCOPED_TRACE(name_of(c, rules));
      expect_one_ranks_numbers(c, rules, {});
    }
  }
}

TEST(TensorAxis, GivesThemWithRecomputation) {
  for (const TensorCase& c : kCases) {
    if (!fits(c)) continue;
    for (const Sites& sites :
         {Sites{"attention"}, {"qkv"}, {"mlp"}, {"mlp_hidden"}, {"attention", "qkv", "mlp", "mlp_hidden"}}) {
      SCOPED_TRACE(c.keys + " recomputing from " + *sites.begin());
      expect_one_ranks_numbers(c, {}, sites);
    }
  }
}

TEST(TensorAxis, MultipliesWithRowsOnDifferentRanks) {
  if (world().size() != 4) return;
  const TensorCase c{kSizes + heads_of(4, 1) + "vocab: 11, tied: true", 4, 11, 2, 5};
  const Model model = decoder_of(c.keys);
  const Result expected = alone(c, model);
  for (const Rules& rules : kRules) {
    SCOPED_TRACE(name_of(c, rules));
    Workbench bench;
    const Mesh mesh(world(), mesh_of({{Axis::kReplica, 2}, {Axis::kTensor, 2}}), {});
    ChainRun run(bench, model, mesh, layout_rules_of(rules));
    Microbatch own = microbatch_of(bench, c.samples, c.length, c.vocab);
    const std::int64_t row = mesh.coord(Axis::kReplica);
    own.batch.tokens = own.batch.tokens.rows(row, row + 1);
    own.batch.targets = own.batch.targets.rows(row, row + 1);
    own.placements = Placements::sharded({Axis::kReplica});

    const double loss = run.differentiate(own);

    EXPECT_NEAR(joined_loss(run, loss, mesh), expected.loss, 1e-12 * expected.loss);
    expect_same(joined_gradients(run, mesh), expected.gradients);
  }
}

TEST(TensorAxis, MovesInADryRunWhatItMovesInARealOne) {
  for (const TensorCase& c : kCases) {
    if (!fits(c)) continue;
    SCOPED_TRACE(c.keys);
    const Model model = decoder_of(c.keys);
    const MeshShape shape = mesh_of({{Axis::kTensor, world().size()}});
    const Mesh mesh(world(), shape, {}), dry(shape, mesh.coord(), {});
    const auto run = [&](Workbench& bench, const Mesh& on) {
      ChainRun(bench, model, on, layout_rules_of({}))
          .differentiate(microbatch_of(bench, c.samples, c.length, c.vocab), {false, {"attention", "mlp"}});
      return on.traffic().at("tensor");
    };
    Workbench cpu, meta(Device::Kind::kMeta);

    const Traffic real = run(cpu, mesh), counted = run(meta, dry);

    EXPECT_GT(real.bytes, 0);
    EXPECT_EQ(counted.bytes, real.bytes);
    EXPECT_EQ(counted.calls, real.calls);
    EXPECT_EQ(dry.along(Axis::kTensor).call_hash(), mesh.along(Axis::kTensor).call_hash());
    check_same_calls(mesh.along(Axis::kTensor), world());
    EXPECT_EQ(meta.allocator.use().peak, cpu.allocator.use().peak);
    for (std::size_t i = 0; i < kKernelKindCount; ++i) {
      const auto kind = static_cast<KernelKind>(i);
      if (kind == KernelKind::kCommunication || kind == KernelKind::kReduce) continue;
      EXPECT_EQ(meta.stream.profile()[kind].flops, cpu.stream.profile()[kind].flops) << dew::name_of(kind);
      EXPECT_EQ(meta.stream.profile()[kind].bytes, cpu.stream.profile()[kind].bytes) << dew::name_of(kind);
    }
  }
}

}  // namespace
}  // namespace dew::test
