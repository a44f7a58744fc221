#include <algorithm>
#include <array>

#include "io/config_value.h"
#include "io/run_spec_words.h"

namespace dew {

namespace {

constexpr std::array<std::string_view, 4> kSchedules{"gpipe", "1f1b", "interleaved", "zero_bubble"};

}  // namespace

std::string_view name_of(PipelineSchedule schedule) {
  return kSchedules[static_cast<std::size_t>(schedule)];
}

PipelineSection read_pipeline(ConfigSection root) {
  ConfigSection s = root.section({"pipeline", "", "the order of work over pipeline stages"});
  PipelineSection pipeline;
  const std::string schedule = s.choice(
      {"schedule", "",
       "gpipe: all forwards, then all backwards; 1f1b: fewer microbatches in memory; interleaved: 1f1b "
       "over several chunks a rank; zero_bubble: 1f1b with weight gradients in the gaps"},
      "1f1b", kSchedules);
  pipeline.schedule = static_cast<PipelineSchedule>(
      std::find(kSchedules.begin(), kSchedules.end(), schedule) - kSchedules.begin());
  pipeline.microbatches =
      s.integer({"microbatches", "microbatches", "of a step (times accumulate) where mesh.stage is above 1"},
                pipeline.microbatches, {.low = 1, .high = 1 << 16});
  pipeline.chunks = s.integer({"chunks", "chunks", "of the chain that a rank holds when interleaved"},
                              pipeline.chunks, {.low = 1, .high = 1 << 16});
  const ConfigSection::WordOrTexts layers =
      s.word_or_texts({"layers", "blocks",
                       "layers of each stage in the order of the chain (of each chunk, stage by stage, when "
                       "interleaved); the "
                       "embedding joins the first, the head the last; auto: by the cost of blocks"},
                      "auto", "auto or a list of counts");
  if (layers.word.empty()) {
    for (const std::string& text : layers.texts) {
      const bool number = !text.empty() && text.size() <= 6 &&
                          std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
      if (!number)
        s.error("layers", "\"" + shown(text) + "\" is no count; accepted: auto or a list of counts");
      pipeline.layers.push_back(number ? std::stoll(text) : 0);
    }
    if (pipeline.layers.empty()) s.error("layers", "accepted: auto or a list of counts");
  } else if (layers.word != "auto") {
    s.error("layers", "accepted: auto or a list of counts");
  }
  return pipeline;
}

std::string read_sequence_exchange(ConfigSection root) {
  constexpr std::array<std::string_view, 6> kExchanges{"auto",   "measured", "all_to_all",
                                                       "gather", "band",     "ring"};
  return root.choice(
      {"sequence_exchange", "",
       "how attention meets positions of other ranks; auto: by a rule, measured: the fastest of a "
       "trial at the start, or one of the exchanges by name"},
      "auto", kExchanges);
}

std::int64_t microbatches_of(const RunSpec& spec, const MeshShape& mesh) {
  return spec.accumulate * (mesh[Axis::kStage] > 1 ? spec.pipeline.microbatches : 1);
}

int chunks_of(const RunSpec& spec, const MeshShape& mesh) {
  const bool interleaved = mesh[Axis::kStage] > 1 && spec.pipeline.schedule == PipelineSchedule::kInterleaved;
  return interleaved ? static_cast<int>(spec.pipeline.chunks) : 1;
}

}  // namespace dew
