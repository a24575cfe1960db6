// The commands. Each adds itself to the command line; when it is chosen it runs from CLI11's callback, and sets the
// exit status, or throws Failure (message.h).
#pragma once

namespace CLI {
class App;
}

namespace annex::inspect {

void add_profile(CLI::App& app, int* status);  // profile/command.cpp
void add_top(CLI::App& app, int* status);      // process/top.cpp
void add_stats(CLI::App& app, int* status);    // process/stats.cpp
void add_trim(CLI::App& app, int* status);     // process/trim.cpp

}  // namespace annex::inspect
