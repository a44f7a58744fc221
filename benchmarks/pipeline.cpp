// The pipeline schedules on the ranks of a stage axis, side by side in one run: step time, the bubble that
// was measured beside the one that the simulation gives for the measured times of the actions, and the peak
// of activations beside the simulation's count of live microbatches.
//
//   mpirun -np S bench_pipeline RUN.yaml [--rounds N] [--set key.path=value]...      S stages, no other axis
//
// busy = time in F, B, I and W without what the stage axis waits inside them; span = from the first action of
// a step to the end of the last one of any stage; bubble = 1 - sum of busy / (stages x span).
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/text.h"
#include "base/timer.h"
#include "comm/mpi_env.h"
#include "kernels/threads.h"
#include "run_file.h"
#include "train/run_setup.h"
#include "train/schedule_check.h"
#include "train/schedule_timeline.h"
#include "train/step.h"

namespace {

constexpr std::array kSchedules{dew::PipelineSchedule::kGpipe, dew::PipelineSchedule::kOneFOneB,
                                dew::PipelineSchedule::kInterleaved, dew::PipelineSchedule::kZeroBubble};
constexpr int kWarmUp = 2, kStepsOfATurn = 2;

/// One stage's part of one step. Seconds.
struct StageStep {
  double span = 0;            ///< from this stage's first action to the end of its last
  double waited = 0;          ///< inside computing actions
  std::vector<double> times;  ///< of every action of its program, without waiting
};

/// Times the actions of a step through the executor's observer.
class ActionClock {
 public:
  explicit ActionClock(const dew::Mesh& mesh) : mesh_(mesh) {}

  void note(const dew::Action& action, bool begins) {
    const double now = dew::steady_seconds();
    const double waited = mesh_.along(dew::Axis::kStage).traffic().wait_seconds;
    if (begins) {
      if (step_.times.empty()) first_ = now;
      begin_ = now;
      waited_ = waited;
      return;
    }
    step_.span = now - first_;
    step_.times.push_back(now - begin_ - (waited - waited_));
    if (computes(action.act)) step_.waited += waited - waited_;
  }

  /// What was noted since the last call.
  StageStep take() { return std::exchange(step_, {}); }

 private:
  const dew::Mesh& mesh_;
  double first_ = 0, begin_ = 0, waited_ = 0;
  StageStep step_;
};

/// One step of all stages.
struct Step {
  double seconds = 0;             ///< the whole step: data, program, agreement, update
  double span = 0;                ///< the longest of the stages'
  std::vector<StageStep> stages;  ///< by stage
  double bubble = 0;              ///< measured
  double simulated = 0;           ///< with every stage's mean times of F, I (or B) and W
  double replayed = 0;            ///< with every action's own time
};

double sum_of(const dew::Program& program, std::span<const double> times, auto chosen) {
  double sum = 0;
  for (std::size_t i = 0; i < program.size(); ++i)
    if (chosen(program[i].act)) sum += times[i];
  return sum;
}

double busy(const dew::Program& program, std::span<const double> times) {
  return sum_of(program, times, dew::computes);
}

/// 0 where the program has none.
double mean(const dew::Program& program, std::span<const double> times, dew::Act act) {
  const auto count = std::count_if(program.begin(), program.end(), [act](auto& a) { return a.act == act; });
  const double sum = sum_of(program, times, [act](dew::Act other) { return other == act; });
  return count > 0 ? sum / static_cast<double>(count) : 0;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// One schedule's run: its own mesh, engine and memory.
class Contender {
 public:
  Contender(dew::Config config, std::string schedule, const dew::HostGroup& world)
      : name_(std::move(schedule)),
        setup_(prepare_run(std::move(config), world)),
        allocator_(dew::Device{}),
        stream_(allocator_),
        mesh_(setup_->ranks, setup_->mesh, setup_->groups),
        engine_(setup_->parts(), mesh_, stream_),
        feed_(*setup_->source, setup_->spec, mesh_, setup_->ranks),
        clock_(mesh_),
        shape_{setup_->cut.stages, static_cast<int>(microbatches_of(setup_->spec, setup_->mesh)),
               setup_->cut.chunks},
        programs_(step_programs(setup_->spec, setup_->mesh, setup_->cut)) {
    DEW_CHECK(shape_.stages > 1 && shape_.stages == setup_->ranks.size(), "all ranks must be stages",
              shape_.stages, setup_->ranks.size());
    stream_.set_progress([this] { mesh_.poll(); });
    engine_.executor().observe(
        [this](const dew::Action& action, bool begins) { clock_.note(action, begins); });
    engine_.initialize();
    for (int i = 0; i < kWarmUp; ++i) run_step();
    allocator_.reset_peaks();
  }
  Contender(const Contender&) = delete;
  Contender& operator=(const Contender&) = delete;

  /// Some steps, timed. Collective.
  void turn() {
    for (int i = 0; i < kStepsOfATurn; ++i) {
      const double begin = dew::steady_seconds();
      run_step();
      Step step;
      step.seconds = dew::steady_seconds() - begin;
      gather(step);
      steps_.push_back(std::move(step));
    }
  }

  /// Collective; rank 0 prints.
  void report() const {
    std::vector<double> step_ms, simulated, replayed;
    for (const Step& step : steps_) {
      step_ms.push_back(1e3 * step.seconds);
      simulated.push_back(step.bubble / step.simulated);
      replayed.push_back(step.bubble / step.replayed);
    }
    const Step& best = *std::min_element(steps_.begin(), steps_.end(),
                                         [](const Step& a, const Step& b) { return a.span < b.span; });
    const std::vector<double> peaks = activation_peaks();
    const dew::ScheduleReport live = simulate(best);
    if (setup_->ranks.rank() != 0) return;
    std::printf("%-12s step_ms best %.1f median %.1f  bubble %.4f simulated %.4f replayed %.4f\n",
                name_.c_str(), *std::min_element(step_ms.begin(), step_ms.end()), median(step_ms),
                best.bubble, best.simulated, best.replayed);
    std::printf("             of simulated %.3f, median of all steps %.3f; of replayed %.3f, median %.3f\n",
                best.bubble / best.simulated, median(simulated), best.bubble / best.replayed,
                median(replayed));
    for (std::size_t s = 0; s < best.stages.size(); ++s) {
      const auto mean_ms = [&](dew::Act act) { return 1e3 * mean(programs_[s], best.stages[s].times, act); };
      std::printf("  stage %zu  F %.2f B %.2f I %.2f W %.2f ms  busy %.1f waited %.1f of span %.1f ms\n", s,
                  mean_ms(dew::Act::kForward), mean_ms(dew::Act::kBackward),
                  mean_ms(dew::Act::kBackwardInput), mean_ms(dew::Act::kBackwardWeight),
                  1e3 * busy(programs_[s], best.stages[s].times), 1e3 * best.stages[s].waited,
                  1e3 * best.span);
      std::printf("           activations peak %.2f MiB  live %d of 1/%d stage, of them deferred %d\n",
                  peaks[s] / (1 << 20), live.peak_live[s], shape_.chunks, live.peak_deferred[s]);
    }
  }

  const std::string& name() const { return name_; }
  /// By stage: the most microbatches of a whole stage's activations that the simulation finds live.
  std::vector<double> simulated_live() const {
    std::vector<double> live;
    for (const int pairs : simulate(steps_.front()).peak_live)
      live.push_back(static_cast<double>(pairs) / shape_.chunks);
    return live;
  }
  /// By stage, bytes. Collective.
  std::vector<double> activation_peaks() const {
    std::vector<double> peaks(static_cast<std::size_t>(shape_.stages));
    peaks[stage()] =
        static_cast<double>(allocator_.use().peak[static_cast<std::size_t>(dew::Owner::kActivations)]);
    setup_->ranks.sum(peaks);
    return peaks;
  }

 private:
  std::size_t stage() const { return static_cast<std::size_t>(mesh_.coord(dew::Axis::kStage)); }

  void run_step() {
    clock_.take();
    // The count of targets, which all ranks agree on before the program, starts the stages together.
    const dew::StepResult result = run_gradients(engine_, feed_, ++step_, {}, setup_->ranks, stream_);
    apply_update(engine_, setup_->spec, step_, result.sums);
  }

  void gather(Step& step) {
    step.stages.resize(static_cast<std::size_t>(shape_.stages));
    const StageStep mine = clock_.take();
    double total = 0;
    for (std::size_t s = 0; s < step.stages.size(); ++s) {
      std::vector<double> fields(programs_[s].size() + 2);
      if (s == stage()) {
        DEW_CHECK(mine.times.size() == programs_[s].size(), mine.times.size(), programs_[s].size());
        std::copy(mine.times.begin(), mine.times.end(), fields.begin());
        *(fields.end() - 2) = mine.span;
        fields.back() = mine.waited;
      }
      setup_->ranks.sum(fields);  // the others' are zero
      step.stages[s] = {*(fields.end() - 2), fields.back(), {fields.begin(), fields.end() - 2}};
      step.span = std::max(step.span, step.stages[s].span);
      total += busy(programs_[s], step.stages[s].times);
    }
    step.bubble = 1 - total / (shape_.stages * step.span);
    step.simulated = simulate(step).bubble();
    step.replayed = 1 - total / (shape_.stages * replay(step));
  }

  dew::ScheduleReport simulate(const Step& step) const {
    std::vector<dew::ActionTimes> times;
    for (std::size_t s = 0; s < step.stages.size(); ++s) {
      const auto mean_of = [&](dew::Act act) { return mean(programs_[s], step.stages[s].times, act); };
      // B counts as input gradients alone: the simulation only adds the two.
      times.push_back({mean_of(dew::Act::kForward),
                       mean_of(dew::Act::kBackward) + mean_of(dew::Act::kBackwardInput),
                       mean_of(dew::Act::kBackwardWeight)});
    }
    return check_schedule(programs_, shape_, times);
  }

  /// The span, when every action takes what it took and messages take no time.
  double replay(const Step& step) const {
    std::vector<std::vector<double>> seconds;
    for (const StageStep& stage : step.stages) seconds.push_back(stage.times);
    double span = 0;
    for (const auto& stage : play(programs_, shape_, seconds)) span = std::max(span, stage.back().end);
    return span;
  }

  std::string name_;
  std::unique_ptr<dew::RunSetup> setup_;
  dew::Allocator allocator_;
  dew::Stream stream_;
  dew::Mesh mesh_;
  dew::Engine engine_;
  dew::DataFeed feed_;
  ActionClock clock_;
  dew::PipelineShape shape_;
  std::vector<dew::Program> programs_;
  std::int64_t step_ = 0;
  std::vector<Step> steps_;
};

/// "gpipe 8.0 > interleaved 2.5 > ..." with the largest first.
std::string order_text(std::span<const std::unique_ptr<Contender>> contenders, std::span<const double> values,
                       double unit) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return values[a] > values[b]; });
  std::string text;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i > 0) text += values[order[i]] < values[order[i - 1]] ? " > " : " = ";
    text += contenders[order[i]]->name() + dew::format(" %.2f", values[order[i]] / unit);
  }
  return text;
}

/// The order of the schedules by memory on each stage. Collective; rank 0 prints.
void report_memory(std::span<const std::unique_ptr<Contender>> contenders, int rank) {
  std::vector<std::vector<double>> peaks, live;
  for (const auto& contender : contenders) {
    peaks.push_back(contender->activation_peaks());
    live.push_back(contender->simulated_live());
  }
  if (rank != 0) return;
  for (std::size_t s = 0; s < peaks.front().size(); ++s) {
    std::vector<double> bytes, microbatches;
    for (std::size_t i = 0; i < peaks.size(); ++i) {
      bytes.push_back(peaks[i][s]);
      microbatches.push_back(live[i][s]);
    }
    std::printf("memory of stage %zu\n  simulated microbatches  %s\n  measured MiB            %s\n", s,
                order_text(contenders, microbatches, 1).c_str(),
                order_text(contenders, bytes, 1 << 20).c_str());
  }
}

void run(const Options& options, const dew::MpiEnv& mpi) {
  std::vector<std::unique_ptr<Contender>> contenders;
  for (const dew::PipelineSchedule schedule : kSchedules) {
    const std::string name(name_of(schedule));
    dew::Config config = dew::bench::read_config(options, {"pipeline.schedule=" + name});
    contenders.push_back(std::make_unique<Contender>(std::move(config), name, mpi.world()));
  }
  for (int round = 0; round < options.count; ++round)
    for (const auto& contender : contenders) contender->turn();
  for (const auto& contender : contenders) contender->report();
  report_memory(contenders, mpi.world().rank());
}

}  // namespace

int main(int argc, char** argv) {
  const dew::HostResources host = dew::prepare_launch();
  dew::MpiEnv mpi(argc, argv);
  dew::kernels::set_threads(host.threads);
  try {
    run(parse_options({argv, static_cast<std::size_t>(argc)}, "--rounds", 8), mpi);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_pipeline: %s\n", error.what());
    mpi.abort(1);
  }
  return 0;
}
