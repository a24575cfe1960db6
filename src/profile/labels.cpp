// Labels: see labels.h.
#include "profile/labels.h"

#include <cstddef>

#include "os/lock.h"
#include "os/text.h"
#include "profile/records.h"
#include "profile/tables.h"

namespace annex::profile {

namespace {

constexpr size_t kMostLabels = 16;  // in a set

// A set that is being put together.
struct Draft {
  const char* keys[kMostLabels];
  const char* values[kMostLabels];
  size_t count = 0;
};

// All below under the lock. Labels of a set follow one another, in order of its keys.
const Label* first_of(uint32_t set) {
  const Label* label = tables.labels;
  while (label != nullptr && label->set != set) label = label->next;
  return label;
}

// The set with the label in its place. False where it has too many.
bool draft_with(uint32_t set, const char* key, const char* value, Draft* draft) {
  bool replaced = false;
  const auto add = [draft](const char* of, const char* what) {
    if (what == nullptr) return true;
    if (draft->count == kMostLabels) return false;
    size_t at = draft->count++;
    // Sorted: the same labels are the same set, in whatever order they were given.
    for (; at > 0 && os::compare_texts(of, draft->keys[at - 1]) < 0; --at) {
      draft->keys[at] = draft->keys[at - 1];
      draft->values[at] = draft->values[at - 1];
    }
    draft->keys[at] = of;
    draft->values[at] = what;
    return true;
  };
  for (const Label* label = set != 0 ? first_of(set) : nullptr; label != nullptr && label->set == set;
       label = label->next) {
    const bool same = os::same_text(label->key, key);
    replaced = replaced || same;
    if (!add(label->key, same ? value : label->value)) return false;
  }
  return replaced || add(key, value);
}

bool is_set(const Label* label, const Draft& draft) {
  const uint32_t set = label->set;
  for (size_t i = draft.count; i-- > 0; label = label->next) {  // the last one was added first
    if (label == nullptr || label->set != set || !os::same_text(label->key, draft.keys[i]) ||
        !os::same_text(label->value, draft.values[i]))
      return false;
  }
  return label == nullptr || label->set != set;
}

// The set's number; 0 where memory is exhausted.
uint32_t find_or_add(const Draft& draft) {
  uint32_t set = 0;
  for (const Label* label = tables.labels; label != nullptr; label = label->next) {
    if (label->set == set) continue;
    if (is_set(label, draft)) return label->set;
    set = label->set;
  }
  const uint32_t number = tables.labels == nullptr ? 1 : tables.labels->set + 1;
  Label* first = tables.labels;
  for (size_t i = 0; i < draft.count; ++i) {
    Label* const label = static_cast<Label*>(new_record(sizeof(Label)));
    const char* const key = new_text(draft.keys[i]);
    const char* const value = new_text(draft.values[i]);
    if (label == nullptr || key == nullptr || value == nullptr) return 0;
    *label = {first, number, key, value};
    first = label;
  }
  __atomic_store_n(&tables.labels, first, __ATOMIC_RELEASE);
  return number;
}

}  // namespace

bool set_label(uint32_t* set, const char* key, const char* value) {
  const os::Guard guard(lock);
  Draft draft;
  if (!draft_with(*set, key, value, &draft)) return false;
  const uint32_t number = draft.count > 0 ? find_or_add(draft) : 0;
  if (draft.count > 0 && number == 0) return false;
  *set = number;
  return true;
}

}  // namespace annex::profile
