// Raw profiles: see raw_profile.h.
#include "profile/raw_profile.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "annex/annex.h"
#include "common/scenario.h"

namespace annex_test {

RawProfile read_profile(const std::string& path) {
  RawProfile profile;
  std::map<std::string, std::string> labels;  // value by set
  std::map<std::string, std::string> site_of;
  std::ifstream file(path);
  std::string line;
  bool first = true;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string kind;
    words >> kind;
    if (first && line != "annex-profile 1") return profile;
    first = false;
    if (kind == "stat") {
      std::string name;
      words >> name >> profile.stats[name];
    } else if (kind == "module") {
      profile.modules.push_back(line.substr(line.rfind(' ') + 1));
    } else if (kind == "label") {
      std::string set, key, value;
      words >> set >> key >> value;
      if (key == "site") labels[set] = value;
    } else if (kind == "site") {
      std::string number, set, frame;
      std::uint64_t samples;
      double objects, bytes, freed, lifetime;
      words >> number >> set >> samples >> objects >> bytes >> freed;
      for (int i = 0; i < 8; ++i) words >> lifetime;
      site_of[number] = labels[set];
      ProfiledSite& site = profile.sites[labels[set]];
      site.samples += samples;
      site.objects += objects;
      site.bytes += bytes;
      site.freed += freed;
      site.frames.clear();
      while (words >> frame) site.frames.push_back(frame);
    } else if (kind == "live") {
      std::string number, address, age, thread, resident, shares;
      double asked, size, weight;
      words >> number >> address >> asked >> size >> weight >> age >> thread >> resident >> shares;
      ProfiledSite& site = profile.sites[site_of[number]];
      ++site.live_samples;
      site.live_objects += weight;
      site.live_bytes += weight * asked;
      if (shares != "-") profile.shares.push_back(shares);
    }
    profile.complete = line == "end";
  }
  return profile;
}

RawProfile profile_now() {
  char path[] = "/tmp/annex-profile-XXXXXX";
  const int file = mkstemp(path);
  SCENARIO_CHECK(file >= 0);
  close(file);
  SCENARIO_CHECK(annex_profile_write(path) == 0);
  RawProfile profile = read_profile(path);
  unlink(path);
  SCENARIO_CHECK(profile.complete);
  return profile;
}

SiteLabel::SiteLabel(const char* value) { SCENARIO_CHECK(annex_profile_label("site", value) == 0); }
SiteLabel::~SiteLabel() { SCENARIO_CHECK(annex_profile_label("site", nullptr) == 0); }

}  // namespace annex_test
