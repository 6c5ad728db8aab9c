#!/bin/sh
set -eu
export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True,max_split_size_mb:128
export TORCHINDUCTOR_MAX_AUTOTUNE=1
CUDA_VISIBLE_DEVICES=0 python -m warp_attention.run "$@"
