// annex profile -- PROGRAM, and annex profile --attach PID: takes a profile and makes of it what people open.
#pragma once

#include <string>

#include "profile/run.h"

namespace annex::inspect {

// The program's exit status; kFailed where that is 0 and there is no profile.
int record(RunOptions options, const std::string& output);

void record_running(pid_t process, double seconds, const std::string& output);

}  // namespace annex::inspect
