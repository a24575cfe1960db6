// What annex top shows: a process at a moment, and how it has changed since the moment before.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "process/profile_copy.h"
#include "process/site_table.h"
#include "process/snapshot.h"
#include "process/tables.h"

namespace annex::inspect {

enum class By { kClass, kThread, kSite };

class View {
 public:
  explicit View(pid_t process) : target_(open_target(process)) {}

  // Looks at the process again. Its sites only where they are shown: that takes longest.
  void look(By by);

  std::string as_text(By by) const;
  std::string as_text_with_keys(By by) const;
  nlohmann::ordered_json as_json(By by) const;  // schema "annex-top/1"

 private:
  struct Moment {
    Snapshot heap;
    std::optional<ProfileCopy> profile;  // where sites are shown, and a profile is on
    LiveBySite sites;
  };

  Change change() const;
  Table table(By by) const;
  std::string head() const;
  std::string text(By by, const char* keys) const;

  Target target_;
  std::optional<Moment> before_, now_;
};

const char* name_of(By by);

}  // namespace annex::inspect
