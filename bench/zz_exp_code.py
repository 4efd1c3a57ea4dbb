"""Experiment (not committed): what torch.compile makes."""
import sys
import torch
from bench.peers.cases import BY_KEY
for key in sys.argv[1:]:
    case = BY_KEY[key]
    x = case.drawn(case.sizes, "cuda", 1)
    print("#### CASE", key, file=sys.stderr, flush=True)
    torch._dynamo.reset()
    with torch.no_grad():
        torch.compile(case.plain)(*x.values())
    torch.cuda.synchronize()
