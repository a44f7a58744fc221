// The mesh and the batch of a spec on a number of ranks.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "comm/axis.h"
#include "io/config_cases.h"
#include "io/run_spec.h"

namespace dew {
namespace {

using namespace config_cases;

/// The mesh of the least description with these overrides, and the errors found.
std::pair<MeshShape, Messages> mesh_of(int ranks, const std::vector<std::string>& overrides, int nodes = 1) {
  Config config = parse("model: {}\ndata: {sentences: 100}\n");
  for (const std::string& assignment : overrides) config.set(assignment);
  ConfigSection root = config.root();
  const RunSpec spec = read_run_spec(root);
  root.section({"model", "", ""});
  const MeshShape shape = resolve_mesh(spec.mesh, ranks, nodes, root);
  check_batch(spec, shape, root);
  return {shape, errors_of([&] { config.throw_errors(); })};
}

TEST(ResolveMesh, FillsTheOneAuto) {
  EXPECT_EQ(mesh_of(8, {"mesh.fsdp=4"}).first.extent, (std::array<int, kAxisCount>{2, 1, 4, 1, 1, 1}));
  EXPECT_EQ(mesh_of(8, {"mesh.fsdp=auto"}).first.extent, (std::array<int, kAxisCount>{1, 1, 8, 1, 1, 1}));
  EXPECT_EQ(mesh_of(8, {"mesh.replica=2", "mesh.fsdp=auto"}).first.extent,
            (std::array<int, kAxisCount>{2, 1, 4, 1, 1, 1}));
  EXPECT_EQ(mesh_of(1, {}).first.extent, (std::array<int, kAxisCount>{1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(mesh_of(2, {"mesh.replica=2", "mesh.tensor=auto"}).second, Messages{});
  EXPECT_EQ(mesh_of(2, {"mesh.order=[tensor, replica, stage, fsdp, expert, sequence]"}).first.order[0],
            Axis::kTensor);
}

TEST(ResolveMesh, PutsReplicaAcrossNodesAndFsdpInsideByDefault) {
  const auto extent = [](const std::vector<std::string>& overrides, int ranks, int nodes) {
    return mesh_of(ranks, overrides, nodes).first.extent;
  };
  using Extents = std::array<int, kAxisCount>;
  EXPECT_EQ(extent({"mesh.fsdp=auto"}, 8, 2), (Extents{2, 1, 4, 1, 1, 1}));
  EXPECT_EQ(extent({"mesh.fsdp=auto", "mesh.tensor=2"}, 8, 2), (Extents{2, 1, 2, 1, 1, 2}));
  EXPECT_EQ(extent({"mesh.fsdp=auto", "mesh.stage=2"}, 8, 2), (Extents{2, 2, 2, 1, 1, 1}));
  EXPECT_EQ(extent({"mesh.fsdp=auto", "mesh.stage=4"}, 8, 4), (Extents{1, 4, 2, 1, 1, 1}));
  EXPECT_EQ(extent({"mesh.fsdp=auto", "mesh.sequence=8"}, 16, 4), (Extents{1, 1, 2, 1, 8, 1}));
  EXPECT_EQ(extent({"mesh.fsdp=auto", "mesh.replica=1"}, 8, 2), (Extents{1, 1, 8, 1, 1, 1}));
}

TEST(ResolveMesh, SaysWhichNumbersDoNotFit) {
  EXPECT_EQ(
      mesh_of(8, {"mesh.fsdp=3"}).second,
      Messages{"mesh (--set): replica auto x stage 1 x fsdp 3 x expert 1 x sequence 1 x tensor 1: 3 does not "
               "divide 8 ranks; accepted: sizes whose product divides 8"});
  EXPECT_EQ(
      mesh_of(8, {"mesh={replica: 2, fsdp: 3}"}).second,
      Messages{
          "mesh (--set): replica 2 x stage 1 x fsdp 3 x expert 1 x sequence 1 x tensor 1 = 6 does not fit 8 "
          "ranks; accepted: sizes whose product is 8, or auto for one of them"});
  EXPECT_EQ(
      mesh_of(4, {"mesh={replica: auto, fsdp: auto}"}).second,
      Messages{
          "mesh (--set): replica auto x stage 1 x fsdp auto x expert 1 x sequence 1 x tensor 1: more than "
          "one axis is auto; accepted: at most one"});
  const auto [shape, errors] =
      mesh_of(8, {"mesh.replica=4611686018427387904", "mesh.fsdp=4611686018427387904"});
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_NE(errors[0].find("= more than 2^63 does not fit 8 ranks"), std::string::npos) << errors[0];
  EXPECT_EQ(shape.size(), 1);
}

TEST(ResolveMesh, SaysWhichNumbersPassTheirRange) {
  const auto errors =
      mesh_of(8, {"mesh.fsdp=auto", "mesh.tensor=4294967296", "mesh.sequence=4294967296"}, 2).second;
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_NE(errors[0].find("more than 2^63"), std::string::npos) << errors[0];
}

TEST(CheckBatch, SaysWhatWouldDivide) {
  EXPECT_EQ(
      mesh_of(3, {"accumulate=2"}).second,
      Messages{
          "data.batch (default): 16: does not divide by 3 row ranks (replica 3 x fsdp 1 x expert 1) times 2 "
          "microbatches (accumulate) = 6; accepted: 12 or 18, or another multiple of 6"});
  EXPECT_EQ(mesh_of(2, {"data.batch=1"}).second.size(), 1u);
  EXPECT_EQ(mesh_of(4, {"accumulate=4"}).second, Messages{});
  EXPECT_EQ(mesh_of(4, {"accumulate=2147483647"}).second.size(), 1u);
}

}  // namespace
}  // namespace dew
