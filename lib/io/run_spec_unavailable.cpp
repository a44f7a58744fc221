#include <array>

#include "io/run_spec_words.h"

namespace dew {

void refuse(ConfigSection section, std::string_view key, std::string_view accepted) {
  section.error(key, "not available in this version; accepted: " + std::string(accepted));
}

std::optional<double> read_device(ConfigSection root) {
  ConfigSection s = root.section({"device", "", "what computes; one word is short for its kind"}, "kind");
  constexpr std::array<std::string_view, 3> kKinds{"auto", "cpu", "cuda"};
  if (s.choice({"kind", "", "auto is cpu; cuda is not available in this version"}, "auto", kKinds) ==
      "cuda") {
    refuse(s, "kind", "auto or cpu");
  }
  const std::optional<double> peak =
      s.real_or({"peak", "FLOP/s", "peak of one rank, for MFU; null: measured at the start"}, "null",
                std::nullopt, {.low = 0, .low_open = true});
  constexpr std::array<std::string_view, 3> kTransports{"auto", "mpi", "nccl"};
  if (root.choice({"transport", "",
                   "what moves tensors between ranks; auto is mpi; nccl is not available in this "
                   "version"},
                  "auto", kTransports) == "nccl") {
    refuse(root, "transport", "auto or mpi");
  }
  return peak;
}

void read_reproducible(ConfigSection root) {
  if (root.is_mapping("reproducible")) return refuse(root, "reproducible", "false");
  if (root.boolean({"reproducible", "",
                    "the same bits from any number of ranks; true is not available in this "
                    "version"},
                   false)) {
    refuse(root, "reproducible", "false");
  }
}

bool read_failure(ConfigSection root) {
  ConfigSection s = root.section({"failure", "", "limits of waiting; there is no watchdog in this version"});
  constexpr double kStall = 30 * 60, kAgree = 24 * 3600;
  if (s.seconds(
          {"stall", "duration", "longest stall of a device or collective; only the default is available"},
          kStall) != kStall) {
    refuse(s, "stall", "30m");
  }
  if (s.seconds(
          {"agree", "duration", "longest wait of a host before an agreement; only the default is available"},
          kAgree) != kAgree) {
    refuse(s, "agree", "24h");
  }
  return s.boolean({"check_calls", "",
                    "compare after every step what the ranks of each group have called, so that ranks which "
                    "disagree are named instead of hanging; costs a few messages a step"},
                   false);
}

}  // namespace dew
