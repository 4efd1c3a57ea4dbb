"""Experiment (not committed): schedules of cases beside the chosen ones."""
import inspect, json, os, subprocess, sys, time

def choice(key):
    import blockbuster as bb
    from bench.peers.cases import BY_KEY
    from blockbuster.selection.choice import Fused
    case = BY_KEY[key]
    names = list(case.inputs); ns = {"fn": case.fn}
    exec("def prog(%s): return fn(%s)" % (",".join(names), ",".join(names)), ns)
    return case, Fused(bb.lower(bb.trace(ns["prog"], **case.inputs))).consider(case.sizes, case.dtype, "sm_90").best

def kernel(key, text):
    import blockbuster as bb
    case, best = choice(key)
    return case, bb.emit(best.graph, case.sizes, case.dtype, "sm_90", schedule=text or best.scheduled.schedule)

if __name__ == "__main__":
    for key in sys.argv[1:]:
        case, b = choice(key)
        print("####", key, b.name, b.cost)
        print(b.scheduled.program)
        print(b.scheduled.schedule)
