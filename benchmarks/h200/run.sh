#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Prepare, run, print: benchmarks/h200/run.sh PART... on a machine with one NVIDIA GPU, whose PEs share it under MPS; or
# with GPUS=n of them, a PE on each, which are compared with NCCL too.
#
# Parts: env, shares, correct, quick, signals, overhead, probes, collectives, explore, gemm, gemm_rs, gemm_ar, all. Raw logs go to
# $OUT (default: out/h200).
# BUDGET: seconds for all parts; what does not fit is cut or left out. LIMIT, PES: of each part. LARGEST: MiB, of the
# collectives. H200_DEBUG=1: wait after every call, and tell what is called.
# WHEELS names a folder of wheels of what the machine lacks (nvshmem4py, xdsl, pydantic, ...); nothing is downloaded.
set -uo pipefail
cd "$(dirname "$0")/../.."
OUT=${OUT:-out/h200}; mkdir -p "$OUT"
PYTHON=${PYTHON:-python3}
ROUNDS=${ROUNDS:-1000}
GPUS=${GPUS:-1}
SITE=$(mktemp -d)
if [ -n "${WHEELS:-}" ]; then
  $PYTHON -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --upgrade --target "$SITE" "$WHEELS"/*.whl || exit
fi
export PYTHONPATH="$PWD:$PWD/benchmarks/h200:$SITE${PYTHONPATH:+:$PYTHONPATH}" PYTHONUNBUFFERED=1
export TRITON_CACHE_DIR=${TRITON_CACHE_DIR:-$SITE/cache} TRITON_DIST_BACKEND=cuda OMP_NUM_THREADS=1
# One node: no network. Several PEs on a GPU: MPS, or their kernels would take turns.
export NVSHMEM_REMOTE_TRANSPORT=none NVSHMEM_SYMMETRIC_SIZE=${NVSHMEM_SYMMETRIC_SIZE:-6G}
# NVLink multicast stays off: a program that uses it can put GPUs out of service.
export NVSHMEM_DISABLE_NVLS=1 NCCL_NVLS_ENABLE=0 TORCH_SYMM_MEM_DISABLE_MULTICAST=1
# The PE that ends first takes the store along, which NCCL's watchdogs of the others would report.
export TORCH_NCCL_ENABLE_MONITORING=0
STATUS=0

mps_start() {
  [ "$GPUS" = 1 ] || return 0
  export CUDA_MPS_PIPE_DIRECTORY=$(mktemp -d "$SITE/mps-XXXX") CUDA_MPS_LOG_DIRECTORY=$SITE/mps-log
  mkdir -p "$CUDA_MPS_LOG_DIRECTORY"
  nvidia-cuda-mps-control -d || echo "MPS did not start"
}

mps_stop() { [ "$GPUS" != 1 ] || echo "quit -t 5" | timeout 20 nvidia-cuda-mps-control >/dev/null 2>&1; }

mps_start
trap 'mps_stop; rm -rf "$SITE"' EXIT

pes() {  # pes NAME TIMEOUT N script arguments...
  local name=$1 limit=$2 n=$3; shift 3
  local began=$SECONDS left=$((${BUDGET:-100000} - SECONDS - 5))
  [ "$left" -ge 25 ] || { echo "## $name, $n PEs: no time left"; return; }
  [ "$limit" -le "$left" ] || limit=$left
  SOFT=$((limit > 60 ? limit - 35 : limit / 2))
  $PYTHON benchmarks/h200/launch.py -n "$n" --gpus "$GPUS" --timeout "$limit" "${@//SOFT/$SOFT}" 2>&1 | tee -a "$OUT/$name.log" |
    grep -v -e '^W' -e 'named symbol not found' | head -c 30000
  local status=${PIPESTATUS[0]}
  LAST=$status
  echo "## $name, $n PEs: $((SECONDS - began)) s, status $status"
  # A PE that was ended in the midst of a kernel may have left the daemon unusable.
  [ "$status" = 0 ] || { STATUS=1; mps_stop; mps_start; }
  return 0
}

# NVSHMEM's reduce-scatter needs scratch memory, of which each of its teams has so much. If that cannot be had, the
# benchmark cuts the work into smaller pieces. And its collectives may or may not be captured in a CUDA graph.
probes() {
  [ -z "${SCRATCH_TRIED:-}" ] || return 0
  SCRATCH_TRIED=1 LAST=1
  export NVSHMEM_REDUCE_SCRATCH_SIZE=16777216
  pes probe 45 2 benchmarks/h200/measure.py probe
  [ "$LAST" = 0 ] || export NVSHMEM_REDUCE_SCRATCH_SIZE=524288
  pes probe 45 2 benchmarks/h200/measure.py probe_graph
  [ "$LAST" != 0 ] || export H200_NVSHMEM_GRAPHS=1
  STATUS=0
}

environment() {
  nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
  nvidia-smi topo -m
  $PYTHON -m triton_dist.cli doctor 2>&1 | tail -40
  $PYTHON -c "import torch, triton; print('torch', torch.__version__, 'triton', triton.__version__,
    'NCCL', '.'.join(map(str, torch.cuda.nccl.version())), 'CUDA', torch.version.cuda)"
  $PYTHON -c "from triton_dist.backends.cuda import library; i = library.installed(); print(i, i.file_for(90))"
}

part() {
  echo "# $1"
  local few="$GPUS" many="$GPUS" measure=benchmarks/h200/measure.py
  [ "$GPUS" != 1 ] || { few="2 4"; many="2 4 8"; }
  case $1 in
    env) environment 2>&1 | tee "$OUT/env.log" ;;
    shares) for p in 100 50 33 25 20 16 14 12; do
      CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=$p timeout 60 $PYTHON benchmarks/h200/shares.py 2>&1 | tee -a "$OUT/shares.log"; done ;;
    correct) for n in ${PES:-$many}; do pes correct "${LIMIT:-240}" "$n" benchmarks/h200/correct.py --rounds "$ROUNDS" --seconds SOFT; done ;;
    quick) for n in ${PES:-2}; do pes quick "${LIMIT:-150}" "$n" benchmarks/h200/correct.py --rounds 5; done ;;
    signals) for n in ${PES:-$few}; do pes signals "${LIMIT:-60}" "$n" $measure ping_pong push; done ;;
    overhead) pes overhead "${LIMIT:-120}" 1 benchmarks/h200/overhead.py ;;
    probes) probes ;;
    collectives) probes; for n in ${PES:-$few}; do pes collectives "${LIMIT:-160}" "$n" $measure collectives --largest "${LARGEST:-256}" --seconds SOFT; done ;;
    explore) for n in ${PES:-$few}; do pes explore "${LIMIT:-120}" "$n" $measure explore --largest "${LARGEST:-256}" --seconds SOFT; done ;;
    gemm) for n in ${PES:-$few}; do pes gemm "${LIMIT:-120}" "$n" $measure gemm_check ag_gemm --seconds SOFT; done ;;
    gemm_rs) probes; for n in ${PES:-$few}; do pes gemm_rs "${LIMIT:-100}" "$n" $measure gemm_rs --seconds SOFT; done ;;
    gemm_ar) for n in ${PES:-$few}; do pes gemm_ar "${LIMIT:-60}" "$n" $measure gemm_ar; done ;;
    *) echo "unknown part: $1"; STATUS=1 ;;
  esac
}

[ "${1:-all}" = all ] && set -- env correct signals overhead collectives gemm gemm_rs gemm_ar
for name in "$@"; do part "$name"; done
exit $STATUS
