# What `make install` puts where: libraries, headers, the CMake package and the pkg-config files. Included once, where the
# flavours' targets, annex-shared, annex-static, annex-solo-shared and so on, are known.
include_guard(GLOBAL)
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS annex-shared annex-static annex-solo-shared annex-solo-static annex-offload-shared annex-offload-static
  annex-hardened-shared annex-hardened-static
  EXPORT annexTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/annex DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

# find_package(annex) gives annex::annex, annex::solo, annex::offload, annex::hardened, and each of them -static.
set(annex_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/annex)
install(EXPORT annexTargets NAMESPACE annex:: DESTINATION ${annex_package_dir})
configure_package_config_file(
  ${CMAKE_CURRENT_LIST_DIR}/annexConfig.cmake.in ${PROJECT_BINARY_DIR}/annexConfig.cmake
  INSTALL_DESTINATION ${annex_package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/annexConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/annexConfig.cmake ${PROJECT_BINARY_DIR}/annexConfigVersion.cmake
  DESTINATION ${annex_package_dir})

# pkg-config annex, annex-solo, annex-offload, annex-hardened. The prefix is written relative to the file, so that an installation may be
# moved, and `cmake --install --prefix` elsewhere than configured stays right.
file(RELATIVE_PATH annex_pc_prefix
  ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
foreach(flavour annex annex-solo annex-offload annex-hardened)
  set(annex_pc_name ${flavour})
  set(annex_pc_for "any program")
  if(flavour STREQUAL "annex-solo")
    set(annex_pc_for "single-threaded programs")
  elseif(flavour STREQUAL "annex-offload")
    set(annex_pc_for "programs with a core to spare")
  elseif(flavour STREQUAL "annex-hardened")
    set(annex_pc_for "programs that may be attacked, or have bugs to be found")
  endif()
  configure_file(${CMAKE_CURRENT_LIST_DIR}/annex.pc.in ${PROJECT_BINARY_DIR}/${flavour}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${flavour}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
