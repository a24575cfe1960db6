// Takes a profile and makes of it what people open: see record.h.
#include "profile/record.h"

#include <algorithm>

#include "message.h"
#include "process/attach.h"
#include "profile/files.h"
#include "profile/formats.h"
#include "profile/output_place.h"
#include "profile/report.h"
#include "profile/text.h"

namespace annex::inspect {
namespace {

constexpr size_t kTop = 10;
constexpr size_t kMostProblems = 5;

void say_problems(const Profile& profile) {
  const size_t shown = std::min(profile.problems.size(), kMostProblems);
  for (size_t i = 0; i < shown; ++i) say("{}", profile.problems[i]);
  if (shown < profile.problems.size()) say("and {} more files without names", profile.problems.size() - shown);
}

// Standard error, as standard output is the program's.
void make_outputs(const std::string& raw_file, pid_t process, const OutputPlace& place) {
  const Profile profile = make_profile(read_raw(raw_file));
  const std::string html = place.path(process, ".html"), for_pprof = place.path(process, ".pb.gz");
  write_file(html, page(profile, kLiveBytes));
  write_file(for_pprof, pprof(profile));
  say_problems(profile);
  fmt::print(stderr, "{}", summary(profile));
  const std::string top = top_sites(profile, kLiveBytes, kTop);
  fmt::print(stderr, "\n{}\n", top.empty() ? "No sampled block is live.\n" : top);
  say("{} is the page, {} for pprof, {} for annex profile show, convert and diff", html, for_pprof, raw_file);
}

void list_others(const std::vector<OutputPlace::RawFile>& files, pid_t process) {
  for (const auto& file : files) {
    if (file.process != process)
      say("{}: process {}, which it started (annex profile show {})", file.path, file.process, file.path);
  }
}

}  // namespace

int record(RunOptions options, const std::string& output) {
  const OutputPlace place(output);
  options.pattern = place.pattern();
  const Ended ended = run_program(options);
  const auto files = place.written();
  if (files.empty()) {
    if (!ended.started) return ended.status;
    say("{} left no profile (status {}): it was killed, left by _exit, or has an allocator of its own",
        options.program[0], ended.status);
    return ended.status == kDone ? kFailed : ended.status;
  }
  const auto first =
      std::find_if(files.begin(), files.end(), [&](const auto& file) { return file.process == ended.process; });
  const auto& main_file = first == files.end() ? files.front() : *first;
  try {
    make_outputs(main_file.path, main_file.process, place);
  } catch (const Failure& failure) {
    say("{}", failure.what());
    return ended.status == kDone ? failure.status : ended.status;
  }
  list_others(files, main_file.process);
  return ended.status;
}

void record_running(pid_t process, double seconds, const std::string& output) {
  const OutputPlace place(output);
  const std::string file = place.path(process, ".raw");
  write_file(file, raw_profile_of(process, seconds));
  make_outputs(file, process, place);
}

}  // namespace annex::inspect
