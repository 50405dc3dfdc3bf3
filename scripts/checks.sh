# Functions of ./check and scripts/check-slow, which source this file: they count what passed, failed and was skipped.
started=$SECONDS passed=0 failed=0 skipped=0 flaky=0
most_flaky=2              # in a run that passes
processors=$(env -u OMP_NUM_THREADS nproc)  # else nproc prints that number
export OMP_NUM_THREADS=2  # of each test, on any machine
not_under_sanitizers='Mpi*:*UnderMpirun*'  # mpirun's own start leaks, and is most of what they do

say() { printf '== %s (%d s)\n' "$*" $((SECONDS - started)); }

# Counts a command as a test. Its exit code 77 means that the machine lacks what it needs.
counted() {  # COMMAND...
  local outcome=0
  "$@" || outcome=$?
  case $outcome in 0) (( ++passed )) ;; 77) (( ++skipped )) ;; *) (( ++failed )) ;; esac
}

run_tests() {  # BUILD
  local counts
  scripts/run-tests "build/$1" --slowest 15 -E _NOT_BUILT | tee "build/$1-tests.log" || true
  counts=$(tail -n 1 "build/$1-tests.log")
  if [[ ! $counts =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped,\ ([0-9]+)\ flaky$ ]]; then
    echo "error: no test ran in build/$1"
    exit 1
  fi
  (( passed += BASH_REMATCH[1], failed += BASH_REMATCH[2], skipped += BASH_REMATCH[3], flaky += BASH_REMATCH[4] )) || true
}

check_layout() {
  say "layout of the code"
  git ls-files '*.h' '*.cc' '*.cu' | xargs -P "$processors" -n 100 clang-format --dry-run -Werror
  scripts/check-rooms
}

# Commands one after another, which leave a core to others.
start_install_and_guide() {  # BUILD
  scripts/check-install "build/$1" >build/install-check.log 2>&1 & installing=$!
  scripts/check-guide "build/$1" >build/guide.log 2>&1 & guiding=$!
}
end_install_and_guide() {
  say "install, use from another project, and the guide's commands"
  counted wait $installing
  cat build/install-check.log
  counted wait $guiding
  cat build/guide.log
}

# Prints the counts, and is false where a test failed or too many passed only at their second try.
finish() {
  say "done"
  echo "$passed passed ($flaky of them flaky), $failed failed, $skipped skipped"
  if (( flaky > most_flaky )); then echo "error: $flaky tests passed only at their second try; $most_flaky may"; fi
  (( failed == 0 && flaky <= most_flaky ))
}
