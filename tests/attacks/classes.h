// The classes of attacks, each in a file of its own.
#pragma once

#include "attack.h"

namespace attacks {

extern const AttackClass kDoubleFree;     // double_free.cpp
extern const AttackClass kUseAfterFree;   // use_after_free.cpp
extern const AttackClass kMetadata;       // metadata.cpp
extern const AttackClass kOverflow;       // overflow.cpp
extern const AttackClass kWrongFree;      // wrong_free.cpp
extern const AttackClass kRealloc;        // realloc.cpp
extern const AttackClass kSizeConfusion;  // size_confusion.cpp
extern const AttackClass kHugeRequest;    // huge_request.cpp
extern const AttackClass kUninitialized;  // uninitialized.cpp
extern const AttackClass kReuse;          // reuse.cpp
extern const AttackClass kNeighbour;      // neighbour.cpp
extern const AttackClass kControls;       // control.cpp

}  // namespace attacks
