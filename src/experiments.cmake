# Builds that nobody installs, made when somebody asks for their targets (NAME-shared, NAME-static): with definitions for
# the core and all above it, or for what stands above the core.
function(annex_experiment_above core name front sources)
  annex_flavour(${name} ${name} ${front} ${core} ${sources} ${ARGN})
  set_target_properties(${name}-objects ${name}-shared ${name}-static PROPERTIES EXCLUDE_FROM_ALL TRUE)
endfunction()
function(annex_experiment name front sources)
  annex_core(${name}-core ${ARGN})
  set_target_properties(${name}-core PROPERTIES EXCLUDE_FROM_ALL TRUE)
  annex_experiment_above(${name}-core ${name} ${front} ${sources} ${ARGN})
endfunction()

# For the simulator: with markers for Mallacc (os/mallacc_markers.h).
annex_experiment(annex-marked Shared shared_sources ANNEX_MARKED)
annex_experiment_above(annex-marked-core annex-solo-marked Solo solo_sources ANNEX_MARKED)

# The other ways in which blocks go to other threads' heaps (remote/channel.h); the default collects batches and sends
# them by the heap.
annex_experiment_above(annex-core annex-unbatched Shared shared_sources ANNEX_UNBATCHED)
annex_experiment_above(annex-core annex-by-slab Shared shared_sources ANNEX_CHANNEL=BySlab)
annex_experiment_above(annex-core annex-by-slab-unbatched Shared shared_sources ANNEX_CHANNEL=BySlab ANNEX_UNBATCHED)
# The same of the hardened build, whose links are encoded, for the simulator: near, as programs there have 40 TiB of
# addresses, and the hardened build takes places by chance among 127.
set(near_definitions ${hardened_definitions} "ANNEX_HIGHEST_PLACE=uintptr_t{39} << 40")
annex_experiment(annex-hardened-near Hardened hardened_sources ${near_definitions})
foreach(way "unbatched;ANNEX_UNBATCHED" "by-slab;ANNEX_CHANNEL=BySlab" "by-slab-unbatched;ANNEX_CHANNEL=BySlab;ANNEX_UNBATCHED")
  list(POP_FRONT way name)
  annex_experiment_above(
    annex-hardened-near-core annex-hardened-near-${name} Hardened hardened_sources ${near_definitions} ${way})
endforeach()

# The hardened build with one measure left out (harden/measures.h): what each costs.
foreach(measure Canaries Zeroing Checks Quarantine)
  string(TOLOWER ${measure} name)
  annex_experiment(annex-hardened-without-${name} Hardened hardened_sources ${hardened_definitions} ANNEX_WITHOUT=k${measure})
endforeach()
annex_experiment(annex-hardened-without-guards Hardened hardened_sources ${hardened_definitions} ANNEX_GUARDS=false)
annex_experiment(annex-hardened-without-shuffling Hardened hardened_sources ${hardened_definitions} ANNEX_SHUFFLED=1)
set(unsealed_definitions ${hardened_definitions})
list(FILTER unsealed_definitions EXCLUDE REGEX FREE_WORDS)
annex_experiment(annex-hardened-without-seals Hardened hardened_sources ${unsealed_definitions})

# Other caches of open batches (remote/open_batches.h); the default is 64 sets of 2 ways, of which the longest goes.
annex_experiment_above(annex-core annex-batches-8x2 Shared shared_sources "ANNEX_BATCHES=OpenBatches<8, 2>")
annex_experiment_above(annex-core annex-batches-16x2 Shared shared_sources "ANNEX_BATCHES=OpenBatches<16, 2>")
annex_experiment_above(annex-core annex-batches-256x2 Shared shared_sources "ANNEX_BATCHES=OpenBatches<256, 2>")
annex_experiment_above(annex-core annex-batches-128x1 Shared shared_sources "ANNEX_BATCHES=OpenBatches<128, 1>")
annex_experiment_above(annex-core annex-batches-32x4 Shared shared_sources "ANNEX_BATCHES=OpenBatches<32, 4>")
annex_experiment_above(annex-core annex-batches-recent Shared shared_sources "ANNEX_BATCHES=OpenBatches<64, 2, LeastRecent>")
annex_experiment_above(annex-core annex-batches-random Shared shared_sources "ANNEX_BATCHES=OpenBatches<64, 2, Random>")
annex_experiment_above(annex-core annex-batches-low-bits Shared shared_sources "ANNEX_BATCHES=OpenBatches<64, 2, Longest, LowBits>")

# The support core's heap without anything before it, for a simulated support core (front/segregated.h). Made wherever
# tests are, as the lab's need it.
set(segregated_sources support/side_tables.cpp support/segregated_heap.cpp front/segregated.cpp)
annex_experiment_above(annex-core annex-segregated Segregated segregated_sources)
if(ANNEX_TESTS)
  set_target_properties(annex-segregated-objects annex-segregated-shared PROPERTIES EXCLUDE_FROM_ALL FALSE)
endif()
