#!/usr/bin/env bash
# compute-sanitizer over small emitted kernels: out-of-bounds accesses, then races in shared memory.
# Each tool has two minutes; a log per tool under OUT (default: build). The last lines say it all.
# No hazard is known or excused: racecheck reports only writes of different values.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
out="${OUT:-build}"
mkdir -p "$out"
export PYTHONUNBUFFERED=1 PYTORCH_NO_CUDA_MEMORY_CACHING=1
export CUDA_LAUNCH_BLOCKING=1
code=0
# only our kernels are watched: torch's own would take most of the time
watch="--kernel-regex kns=_kernel"
compute-sanitizer $watch true >/dev/null 2>&1 || watch="" # another version spells it otherwise
python3 -m bench.gpu.sanitize >"$out/sanitize-warm.log" 2>&1 || code=1 # fills Triton's cache
tail -n 3 "$out/sanitize-warm.log"
for tool in memcheck racecheck; do
  log="$out/sanitize-$tool.log"
  timeout 130 compute-sanitizer --tool "$tool" $watch --error-exitcode 9 \
    python3 -m bench.gpu.sanitize >"$log" 2>&1
  status=$?
  [ $status -eq 0 ] || code=1
  runs=$(grep -c ' ok$' "$log")
  echo "$tool: exit code $status (124: out of time), $runs runs right; $(grep 'ERROR SUMMARY\|RACECHECK SUMMARY' "$log" | tail -n 1)"
  [ $status -eq 0 ] || grep -m 12 '=========' "$log"
done
exit $code
