// Layouts that cannot be: refused with the numbers, exit status 2, nothing written.
#include <gtest/gtest.h>

#include "system/run_folder.h"

namespace dew::testing {
namespace {

struct Case {
  const char* name;
  int ranks;
  Words assignments;
  Words says;
};

// NOLINTNEXTLINE(readability-identifier-naming): GoogleTest looks for this name
void PrintTo(const Case& c, std::ostream* out) {
  *out << c.name;
}

class LayoutErrors : public ::testing::TestWithParam<Case> {};

TEST_P(LayoutErrors, AreToldWithTheNumbersBeforeAnythingIsWritten) {
  const Case& c = GetParam();
  const RunFolder run("mesh: {replica: 1}\n");
  const Outcome outcome = run.train(c.ranks, c.assignments);
  EXPECT_EQ(outcome.status, 2) << outcome.text();
  EXPECT_EQ(count_of(outcome.err, "dew_train: "), 1) << outcome.err;
  for (const std::string& part : c.says) EXPECT_TRUE(outcome.says(part)) << part << '\n' << outcome.err;
  EXPECT_FALSE(run.exists());
}

// The run has 12 rows of 16 positions, one layer of 2 heads, and an MLP of 32.
INSTANTIATE_TEST_SUITE_P(
    All, LayoutErrors,
    ::testing::Values(Case{"HeadsByTensor",
                           3,
                           {"mesh.tensor=3"},
                           {"model.heads", "2 does not divide by tensor 3", "tensor 1, 2"}},
                      Case{"MlpByTensor",
                           2,
                           {"mesh.tensor=2", "model.mlp=33"},
                           {"model.mlp", "33 does not divide by tensor 2"}},
                      Case{"LengthBySequence",
                           3,
                           {"mesh.sequence=3"},
                           {"data.seq_len", "16", "does not divide by sequence 3"}},
                      Case{"CausalGatherOfAnOddHalf",
                           2,
                           {"mesh.sequence=2", "data.seq_len=14", "sequence_exchange=gather"},
                           {"sequence_exchange", "gather", "2 x sequence: 14 by 4"}},
                      Case{"RingOfAnOddHalf",
                           2,
                           {"mesh.sequence=2", "data.seq_len=14", "sequence_exchange=ring"},
                           {"sequence_exchange", "ring", "14 by 4"}},
                      Case{"HeadsByAllToAll",
                           4,
                           {"mesh.sequence=4", "sequence_exchange=all_to_all"},
                           {"sequence_exchange", "2 heads of a rank do not divide by sequence 4"}},
                      Case{"BandWithoutAWindow",
                           2,
                           {"mesh.sequence=2", "sequence_exchange=band"},
                           {"the call has no window"}},
                      Case{"BandOfAWideWindow",
                           2,
                           {"mesh.sequence=2", "sequence_exchange=band", "model.window=12"},
                           {"a window of 12 does not fit one shard of 8 positions"}},
                      Case{"NoExchangeAtAll",
                           2,
                           {"mesh.sequence=2", "data.seq_len=14", "model.heads=1", "model.head_width=16"},
                           {"nothing can run", "all_to_all: 1 heads", "band: the call has no window"}},
                      Case{"MoreStagesThanBlocks",
                           4,
                           {"mesh.stage=4"},
                           {"mesh.stage", "4 stages are more parts than the 3 blocks"}},
                      Case{"LayersOfAnotherLength",
                           2,
                           {"mesh.stage=2", "pipeline.layers=[1, 0, 0]"},
                           {"pipeline.layers", "lists 3 counts for 2 stages"}},
                      Case{"LayersOfAnotherSum",
                           2,
                           {"mesh.stage=2", "pipeline.layers=[1, 1]"},
                           {"adds up to 2 layers", "the 1 of"}},
                      Case{"RowsByMicrobatches",
                           2,
                           {"mesh.stage=2", "pipeline.microbatches=5"},
                           {"data.batch", "5 microbatches (accumulate x pipeline.microbatches)", "10 or 15"}},
                      Case{"GroupsThatStraddleNodes",
                           6,
                           {"mesh.fsdp=2", "mesh.replica=3", "topology.nodes=2"},
                           {"mesh.fsdp: its groups of 2", "would straddle nodes of 3 ranks"}},
                      Case{"TensorAcrossNodes",
                           4,
                           {"mesh.tensor=2", "mesh.replica=2", "topology.nodes=4"},
                           {"mesh.tensor", "would cross nodes"}}),
    [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace dew::testing
