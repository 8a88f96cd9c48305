#!/usr/bin/env bash
# The tests marked `gpu` and the benchmark of the prefix cache, on one GPU, within five minutes.
#
#   bash eval/gpu_check.sh
#
# PYTHON   the interpreter of an environment that has SmartCache's extra [dev] and the models; without it, `make install`
#          makes .venv first (its minutes come on top)
# OUT      where the results go: build/gpu unless it is set
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

out=${OUT:-build/gpu}
if [[ -z ${PYTHON:-} ]]; then
    make install
    PYTHON=.venv/bin/python
fi
export PYTHONPATH=.:integrations:eval${PYTHONPATH:+:$PYTHONPATH} HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false

if ! "$PYTHON" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())'; then
    echo "gpu_check: torch of $PYTHON finds no CUDA device: run this where there is one, with a CUDA build of torch" >&2
    exit 2
fi

mkdir -p "$out"
"$PYTHON" -c 'import torch; print(torch.cuda.get_device_name(), "torch", torch.__version__)' | tee "$out/device.txt"

failed=0
timeout 110 "$PYTHON" -m pytest -m gpu -ra tests 2>&1 | tee "$out/tests.txt" || failed=1
timeout 170 "$PYTHON" -c 'from smartcache_eval.command import main; main()' bench prefix --json --no-peers --quick \
    --rounds 3 --shared 512 --shared 1024 --shared 2048 --shared 4096 >"$out/prefix.json" ||
    { echo "gpu_check: the benchmark did not end well (exit code $?)" >&2; failed=1; }
"$PYTHON" - "$out/prefix.json" <<'END' || failed=1
import json, sys

report = json.load(open(sys.argv[1], encoding="utf-8"))
for case in report["cases"]:
    print("{shared} + {new}: warm / cold {ratio:.3f}, ideal {ideal:.3f}, equal {equals_cold}".format(**case))
print("cost where nothing hits {overhead_at_zero_hits:.2%}, decode ratio {decode_ratio:.2f}".format(**report))
END
echo "results in $out"
exit "$failed"
