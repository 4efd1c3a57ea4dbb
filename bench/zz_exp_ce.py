"""Experiment (not committed): schedules of cross-entropy's rows."""
import json, os, subprocess, sys, time
SIZES = dict(T=4096, V=32768)
DEFER = "defer nest 1 @10"
V = {}
for T, W, warps in ((4, 256, 4), (4, 512, 4), (2, 1024, 4), (1, 1024, 4), (1, 2048, 4), (1, 4096, 4), (1, 4096, 8), (1, 8192, 8), (1, 8192, 16), (2, 2048, 8), (2, 4096, 8), (4, 1024, 8)):
    V[f"{T}x{W} w{warps}"] = f"block T {T}, V {W}\n{DEFER}\nwarps {warps}"
V["1x2048 w4 s2"] = f"block T 1, V 2048\n{DEFER}\nwarps 4\nstage nest 1 V 2"
V["1x4096 w8 s3"] = f"block T 1, V 4096\n{DEFER}\nwarps 8\nstage nest 1 V 3"
V["1x4096 w8 nodefer"] = "block T 1, V 4096\nwarps 8"

def kernel(name):
    import blockbuster as bb
    from blockbuster.frontend import functions
    from bench.peers.suites.rows import cross_entropy
    from blockbuster.rules import fuse
    def f(z, target): return cross_entropy(functions, z, target)
    g = fuse(bb.lower(bb.trace(f, z="T V", target="T V"))).at_snapshot(1).final
    return bb.emit(g, SIZES, "float16", "sm_90", schedule=V[name])

def inputs(T=4096):
    import torch
    g = torch.Generator(device="cuda").manual_seed(1)
    r = lambda: torch.randn(T, 32768, generator=g, device="cuda")
    return dict(z=r().half(), target=torch.softmax(4 * r(), -1).half())

def main():
    if os.environ.get("EXP_CHILD"):
        import torch
        x = inputs(); k = kernel(os.environ["EXP_CHILD"]); out = torch.empty(4096, dtype=torch.float16, device="cuda")
        k(**x, out=out); torch.cuda.synchronize()
        ref = torch.logsumexp(x["z"].double(), -1) - (x["z"].double() * x["target"].double()).sum(-1)
        print(json.dumps(float((out.double() - ref).norm() / ref.norm())))
        return
    t0 = time.time()
    procs = {n: subprocess.Popen([sys.executable, "-m", "bench.zz_exp_ce"], env={**os.environ, "EXP_CHILD": n}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for n in V}
    errors = {}
    for n, p in procs.items():
        try:
            out, err = p.communicate(timeout=max(1, 25 - (time.time() - t0)))
            errors[n] = json.loads(out.splitlines()[-1]) if p.returncode == 0 else err.strip().splitlines()[-1][:150]
        except subprocess.TimeoutExpired:
            p.kill(); errors[n] = "timeout"
    import torch
    from bench.timing import Clock
    clock = Clock(); x = inputs(); runs = {}
    for n in V:
        if not isinstance(errors[n], float): print(n, errors[n]); continue
        k = kernel(n); out = torch.empty(4096, dtype=torch.float16, device="cuda")
        runs[n] = lambda k=k, out=out: k(**x, out=out)
        runs[n]()
    cold = {n: [] for n in runs}
    for _ in range(4):
        for n, r in runs.items(): cold[n].append(clock.cold(r, 4))
    for n in runs: print("ce", n, "err %.1e" % errors[n], "cold", round(min(cold[n]), 1))
    print("all", round(time.time() - t0, 1))
if __name__ == "__main__":
    main()
