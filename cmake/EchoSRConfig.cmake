# EchoSR: compile CUDA targets with Echo-SR, which merges host and device buffers where that provably changes nothing.
#
#   find_package(EchoSR REQUIRED)
#   echo_sr_enable(<target> [TARGET managed|adaptive] [ACCESS exclusive|concurrent] [THETA_MIN <bytes>] [REPAIR on|off]
#                  [REPORT <file>])
#
# The CUDA compiler must be clang of the LLVM that the plugin was built for, or nvcc with that clang as its host compiler
# (CMAKE_CUDA_HOST_COMPILER). Works from an installation and, with EchoSR_DIR=<repository>/cmake, from a build of the repository.

cmake_minimum_required(VERSION 3.22)

set(_echo_sr_places "${CMAKE_CURRENT_LIST_DIR}/../.." "${CMAKE_CURRENT_LIST_DIR}/../target/release")
find_file(ECHO_SR_PLUGIN libecho_sr.so PATHS ${_echo_sr_places} NO_DEFAULT_PATH DOC "The pass plugin of Echo-SR")
find_file(ECHO_SR_RUNTIME libecho_rt.a PATHS ${_echo_sr_places} NO_DEFAULT_PATH DOC "The runtime of Echo-SR's adaptive target")
unset(_echo_sr_places)

if(NOT ECHO_SR_PLUGIN)
  set(EchoSR_FOUND FALSE)
  set(EchoSR_NOT_FOUND_MESSAGE
      "libecho_sr.so is not next to this package; run `cargo xtask install --prefix <dir>` in Echo's repository, or `cargo xtask build`")
  return()
endif()

if(ECHO_SR_RUNTIME AND NOT TARGET EchoSR::runtime)
  find_package(Threads REQUIRED)
  add_library(EchoSR::runtime STATIC IMPORTED)
  set_target_properties(EchoSR::runtime PROPERTIES IMPORTED_LOCATION "${ECHO_SR_RUNTIME}" INTERFACE_LINK_LIBRARIES
                                                                                          "Threads::Threads;${CMAKE_DL_LIBS}")
endif()

# A value of one of several, or an error that names them.
function(_echo_sr_check name value)
  if(NOT value IN_LIST ARGN)
    list(JOIN ARGN ", " valid)
    message(FATAL_ERROR "echo_sr_enable: ${name} can't be `${value}`; valid: ${valid}")
  endif()
endfunction()

function(echo_sr_enable target)
  cmake_parse_arguments(PARSE_ARGV 1 ECHO "" "TARGET;ACCESS;THETA_MIN;REPAIR;REPORT" "")
  if(NOT TARGET "${target}")
    message(FATAL_ERROR "echo_sr_enable: there is no target `${target}`; call it after add_executable or add_library")
  endif()
  if(ECHO_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "echo_sr_enable(${target}): unknown arguments: ${ECHO_UNPARSED_ARGUMENTS}")
  endif()
  set(options "")
  if(DEFINED ECHO_TARGET)
    _echo_sr_check(TARGET "${ECHO_TARGET}" managed adaptive)
    list(APPEND options "target=${ECHO_TARGET}")
  endif()
  if(DEFINED ECHO_ACCESS)
    _echo_sr_check(ACCESS "${ECHO_ACCESS}" exclusive concurrent)
    list(APPEND options "access=${ECHO_ACCESS}")
  endif()
  if(DEFINED ECHO_REPAIR)
    _echo_sr_check(REPAIR "${ECHO_REPAIR}" on off)
    list(APPEND options "repair=${ECHO_REPAIR}")
  endif()
  if(DEFINED ECHO_THETA_MIN)
    if(NOT ECHO_THETA_MIN MATCHES "^[0-9]+$")
      message(FATAL_ERROR "echo_sr_enable: THETA_MIN can't be `${ECHO_THETA_MIN}`; valid: a number of bytes")
    endif()
    list(APPEND options "theta-min=${ECHO_THETA_MIN}")
  endif()
  if(DEFINED ECHO_REPORT)
    get_filename_component(report "${ECHO_REPORT}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_BINARY_DIR}")
    list(APPEND options "report=${report}")
  endif()

  set(clang "-fpass-plugin=${ECHO_SR_PLUGIN}")
  if(CMAKE_CUDA_COMPILER_ID STREQUAL "NVIDIA")
    if(NOT CMAKE_CUDA_HOST_COMPILER MATCHES "clang")
      message(FATAL_ERROR "echo_sr_enable: nvcc needs clang as its host compiler: configure with "
                          "-DCMAKE_CUDA_HOST_COMPILER=clang++-22 -DCMAKE_CUDA_FLAGS=-allow-unsupported-compiler")
    endif()
    set(cuda "-Xcompiler=${clang}")
  else()
    set(cuda "${clang}")
  endif()
  target_compile_options("${target}" PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:${cuda}>")
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    # C++ files that call the CUDA runtime have pairs too.
    target_compile_options("${target}" PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${clang}>")
  endif()

  if(options)
    # The plugin reads its options from the environment. A script that sets them is a launcher whose name changes with them, so that a
    # change of options compiles again.
    set(text "${options}")
    string(REPLACE "'" "'\\''" quoted "${text}")
    string(SHA1 hash "${text}")
    string(SUBSTRING "${hash}" 0 12 hash)
    set(launcher "${CMAKE_CURRENT_BINARY_DIR}/echo-sr-${target}-${hash}.sh")
    file(WRITE "${launcher}" "#!/bin/sh\n# Made by echo_sr_enable(${target}).\nECHO_SR_OPTIONS='${quoted}' exec \"$@\"\n")
    file(CHMOD "${launcher}" PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
    foreach(language CUDA CXX)
      get_target_property(present "${target}" ${language}_COMPILER_LAUNCHER)
      set(launchers "${launcher}")
      if(present)
        list(APPEND launchers ${present})
      endif()
      set_property(TARGET "${target}" PROPERTY ${language}_COMPILER_LAUNCHER "${launchers}")
    endforeach()
  endif()

  if(ECHO_TARGET STREQUAL "adaptive")
    if(NOT TARGET EchoSR::runtime)
      message(FATAL_ERROR "echo_sr_enable: TARGET adaptive needs libecho_rt.a, which is not next to the plugin ${ECHO_SR_PLUGIN}")
    endif()
    target_link_libraries("${target}" PRIVATE EchoSR::runtime)
  endif()
endfunction()
