# Stages for the scripts in this folder: what runs, for how long, how long it
# should take. Source it; the working folder becomes the repository's root.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
stage_name=start
script_start=$SECONDS

clock() { printf '%d:%02d' $(($1 / 60)) $(($1 % 60)); }

# stage NAME EXPECTED_SECONDS COMMAND...
stage() {
  stage_name=$1
  local expected=$2 start=$SECONDS
  shift 2
  printf '== [%s] %s (about %s)\n' "$(clock $((SECONDS - script_start)))" \
    "$stage_name" "$(clock "$expected")"
  "$@"
  printf '== [%s] %s took %s\n' "$(clock $((SECONDS - script_start)))" \
    "$stage_name" "$(clock $((SECONDS - start)))"
}

die() {
  printf '%s: error: %s\n' "$(basename "$0")" "$*" >&2
  trap - EXIT
  exit 1
}

trap 'status=$?; [ $status = 0 ] ||
  printf "%s: error: stage \"%s\" failed (status %d)\n" \
    "$(basename "$0")" "$stage_name" $status >&2' EXIT

# configure FOLDER CMAKE_OPTION...: sets up a build folder.
configure() {
  local folder=$1
  shift
  cmake -G Ninja -B "$folder" -DCMAKE_C_COMPILER=clang-22 \
    -DCMAKE_CXX_COMPILER=clang++-22 "$@"
}
