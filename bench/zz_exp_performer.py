"""Experiment (not committed): schedules of the Performer's program."""
import json, os, subprocess, sys, time
S = int(os.environ.get("EXP_S", "8192"))
SIZES = dict(H=16, S=S, D=64, F=256)

def text(S=128, P=128, F=64, c1=16, c3=4, w1=8, w3=4, w5=8, s1=3, s3=3, s5=3, more=()):
    w2 = w4 = 4
    lines = [f"block S {S}, D' 64 whole, S' {P}, D 64 whole, F {F}", "keep nest 1 @12", "keep nest 1 @63", "split",
      f"chunk nest 1 S' {c1} at once", f"chunk nest 3 S' {c3} at once", "factor nest 3",
      f"warps nest 1 {w1}", "warps nest 2 4", f"warps nest 3 {w3}", "warps nest 4 4", f"warps nest 5 {w5}"]
    if s1 > 1: lines += [f"stage nest 1 F {s1}"]
    if s3 > 1: lines += [f"stage nest 3 S' {s3}"]
    if s5 > 1: lines += [f"stage nest 5 F {s5}", f"stage nest 5 F#2 {s5}"]
    lines += [*more, "overlap nest 2", "overlap nest 3", "overlap nest 4", "overlap nest 5"]
    return "\n".join(lines)

V = {
 "A": {}, "B c3=8": dict(c3=8), "C c3=16": dict(c3=16), "D F128 c3=8 w3=8": dict(F=128, c3=8, w3=8),
 "E F128 P64 c3=16 w3=4": dict(F=128, P=64, c3=16), "F F128 P64 c3=16 w3=8 S64 w5=4": dict(F=128, P=64, c3=16, w3=8, S=64, w5=4),
 "G P64 c3=8": dict(P=64, c3=8), "H S64 w5=4 c1=32": dict(S=64, w5=4, c1=32, c3=8),
 "I s1": dict(s1=1, s3=2, s5=1, c3=8), "J w1=4 w5=4 s2": dict(w1=4, w5=4, s1=2, s3=2, s5=2, c3=8), "K c1=64 s3=4": dict(c1=64, s3=4, c3=8),
 "L F128 s5=2 w3=8 c3=16": dict(F=128, s5=2, s1=2, w3=8, c3=16, c1=32),
}

def program():
    import blockbuster as bb
    from blockbuster.frontend import functions
    from bench.peers.suites.rows import performer
    def performer_(q, k, v, p): return performer(functions, q, k, v, p)
    return bb.lower(bb.trace(performer_, q="H S D", k="H S D", v="H S D", p="F D"))

def graph():
    from blockbuster.rules import fuse
    from blockbuster.selection.again import values_again
    return values_again(fuse(program()), ("D",), alone=True).graph

def kernel(name):
    import blockbuster as bb
    return bb.emit(graph(), SIZES, "float16", "sm_90", schedule=text(**V[name]))

def inputs():
    import torch
    g = torch.Generator(device="cuda").manual_seed(1)
    r = lambda *s: torch.randn(s, generator=g, device="cuda")
    return dict(q=r(16, S, 64).half(), k=r(16, S, 64).half(), v=r(16, S, 64).half(), p=r(256, 64).half())

def child(name):
    import torch
    x = inputs(); k = kernel(name)
    out = torch.full_like(x["q"], float("nan"))
    (o,) = k.outputs
    k(**x, **{o: out}); torch.cuda.synchronize()
    from bench.peers.suites.rows import performer
    from bench.programs import eager
    from blockbuster.frontend import functions
    import blockbuster as bb
    d = {n: t[:2].double() if n != "p" else t.double() for n, t in x.items()}
    def feats(t, axes):
        t = t * 64 ** -0.25; u = t @ d["p"].T
        return torch.exp(u - 0.5 * (t * t).sum(-1, keepdim=True) - u.amax(axes, keepdim=True)) + 1e-4
    fq, fk = feats(d["q"], -1), feats(d["k"], (-1, -2))
    ref = (fq @ (fk.mT @ d["v"])) / (fq @ fk.sum(-2)[..., None])
    e = float((out[:2].double() - ref).norm() / ref.norm())
    print(json.dumps({"error": e}))

def main():
    if os.environ.get("EXP_CHILD"):
        return child(os.environ["EXP_CHILD"])
    t0 = time.time()
    procs = {n: subprocess.Popen([sys.executable, "-m", "bench.zz_exp_performer"], env={**os.environ, "EXP_CHILD": n}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for n in V}
    code = subprocess.Popen([sys.executable, "-m", "bench.zz_exp_code", "losses/cross-entropy-4096x32768", "losses/smoothed-cross-entropy", "others/swish-pair", "performer/performer-8192"], env={**os.environ, "TORCH_LOGS": "output_code"}, stdout=open(os.environ.get("OUT", "/tmp") + "/code.txt", "w"), stderr=subprocess.STDOUT)
    errors = {}
    for n, p in procs.items():
        try:
            out, err = p.communicate(timeout=max(1, 32 - (time.time() - t0)))
            errors[n] = json.loads(out.splitlines()[-1])["error"] if p.returncode == 0 else err.strip().splitlines()[-1][:150]
        except subprocess.TimeoutExpired:
            p.kill(); errors[n] = "timeout"
    try: code.wait(timeout=max(1, 32 - (time.time() - t0)))
    except subprocess.TimeoutExpired: code.kill()
    print("compiled", round(time.time() - t0, 1))
    import torch
    from bench.timing import Clock
    from torch.profiler import profile, ProfilerActivity
    clock = Clock(); x = inputs(); runs = {}
    for n in V:
        if not isinstance(errors[n], float): print(n, errors[n]); continue
        k = kernel(n); out = torch.empty_like(x["q"]); (o,) = k.outputs
        runs[n] = lambda k=k, out=out, o=o: k(**x, **{o: out})
        runs[n]()
    cold = {n: [clock.cold(r, 7) for _ in range(3)] for n, r in runs.items()}
    warm = {}
    for n, r in runs.items():
        warm[n] = clock.graph(r, 3)()
    for n, r in runs.items():
        with profile(activities=[ProfilerActivity.CUDA]) as prof:
            for _ in range(4):
                clock._flushed.zero_(); r()
            torch.cuda.synchronize()
        rows = [(e.key, e.device_time) for e in prof.key_averages() if "mine" in e.key or "kernel" in e.key.lower() or "prog" in e.key]
        rows = [r for r in rows if "Fill" not in r[0] and "elementwise" not in r[0]]
        print(n, "err %.1e" % errors[n], "cold", round(min(cold[n]), 1), "graph", round(warm[n], 1), sorted((k[-12:], round(t, 1)) for k, t in rows))
    print("all", round(time.time() - t0, 1))
if __name__ == "__main__":
    main()
