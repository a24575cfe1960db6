# Builds that nobody installs, made when somebody asks for their targets (NAME-shared, NAME-static): a flavour's policy
# with other members (annex_policy), for the core and all above it, or for what stands above the core.
function(annex_experiment_above core name sources flavour)
  set(parts experiments/parts.h)
  annex_flavour(${name} ${core} ${sources} ${flavour} ${ARGN})
  set_target_properties(${name}-objects ${name}-shared ${name}-static PROPERTIES EXCLUDE_FROM_ALL TRUE)
endfunction()
function(annex_experiment name sources flavour)
  set(parts experiments/parts.h)
  annex_core(${name}-core ${flavour} ${ARGN})
  set_target_properties(${name}-core PROPERTIES EXCLUDE_FROM_ALL TRUE)
  annex_experiment_above(${name}-core ${name} ${sources} ${flavour} ${ARGN})
endfunction()

# For the simulator: with markers for Mallacc (marked.h).
set(marked "using MallocSteps = experiments::MarkedMallocSteps")
annex_experiment(annex-marked shared_sources Shared ${marked})
annex_experiment_above(annex-marked-core annex-solo-marked solo_sources Solo ${marked})

# The other ways in which blocks go to other threads' heaps (remote/channel.h); the default collects batches and sends
# them by the heap.
set(unbatched "using Batches = experiments::Unbatched")
set(by_slab "using Channel = experiments::BySlab")
annex_experiment_above(annex-core annex-unbatched shared_sources Shared ${unbatched})
annex_experiment_above(annex-core annex-by-slab shared_sources Shared ${by_slab})
annex_experiment_above(annex-core annex-by-slab-unbatched shared_sources Shared ${by_slab} ${unbatched})
# The same of the hardened build, whose links are encoded, for the simulator: near, as programs there have 40 TiB of
# addresses, and the hardened build takes places by chance among 127.
set(near "static constexpr uintptr_t kHighestPlace = uintptr_t{39} << 40")
annex_experiment(annex-hardened-near hardened_sources Hardened ${near})
annex_experiment_above(
  annex-hardened-near-core annex-hardened-near-unbatched hardened_sources Hardened ${near} ${unbatched})
annex_experiment_above(annex-hardened-near-core annex-hardened-near-by-slab hardened_sources Hardened ${near} ${by_slab})
annex_experiment_above(
  annex-hardened-near-core annex-hardened-near-by-slab-unbatched hardened_sources Hardened ${near} ${by_slab} ${unbatched})

# The hardened build with one measure left out: what each costs.
foreach(measure Canaries Zeroing Checks Quarantine Guards)
  string(TOLOWER ${measure} name)
  annex_experiment(
    annex-hardened-without-${name} hardened_sources Hardened "static constexpr bool k${measure} = false")
endforeach()
annex_experiment(
  annex-hardened-without-shuffling hardened_sources Hardened "static constexpr uint32_t kShuffled = 1")
annex_experiment(annex-hardened-without-seals hardened_sources Hardened "using FreeWords = PlainWords")

# Other caches of open batches (remote/open_batches.h); the default is 64 sets of 2 ways, of which the longest goes.
foreach(cache
    "8x2: 8, 2" "16x2: 16, 2" "256x2: 256, 2" "128x1: 128, 1" "32x4: 32, 4" "recent: 64, 2, experiments::LeastRecent"
    "random: 64, 2, experiments::Random" "low-bits: 64, 2, remote::Longest, experiments::LowBits")
  string(REGEX MATCH "^(.*): (.*)$" cache ${cache})
  annex_experiment_above(annex-core annex-batches-${CMAKE_MATCH_1} shared_sources Shared
    "using Batches = remote::OpenBatches<${CMAKE_MATCH_2}>")
endforeach()

# The support core's heap without anything before it, for a simulated support core (segregated.h). Made wherever tests
# are, as the lab's need it.
set(segregated_sources support/side_tables.cpp support/segregated_heap.cpp experiments/segregated.cpp)
annex_experiment_above(annex-core annex-segregated segregated_sources Segregated)
if(ANNEX_TESTS)
  set_target_properties(annex-segregated-objects annex-segregated-shared PROPERTIES EXCLUDE_FROM_ALL FALSE)
endif()
