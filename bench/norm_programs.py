"""The quality of the rule sets on random norm programs.

    python -m bench.norm_programs [COUNT]

Prints a Markdown table over programs of the seeds 0, 1, ...: interior buffered edges left at the
end, programs without any, and loads of the best snapshot at 3 blocks per dim, all summed. Then the
same for RULES with each of our rules left out.
"""

import argparse

from blockbuster.rules import PAPER_RULES, RULES
from tests.random_programs.norms import norm_programs, quality


def row(name, programs, rules):
    found = [quality(graph, rules) for graph in programs]
    edges, loads = sum(q.edges for q in found), sum(q.loads for q in found)
    whole = sum(not q.edges for q in found)
    print(f"| {name} | {edges} | {whole} | {loads} |", flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("count", nargs="?", type=int, default=150, help="of programs")
    programs = norm_programs(parser.parse_args().count)
    print(f"| {len(programs)} programs | edges left | fully fused | loads of best snapshots |")
    print("|---|---|---|---|")
    row("PAPER_RULES", programs, PAPER_RULES)
    row("RULES", programs, RULES)
    for rule in RULES:
        if rule not in PAPER_RULES:
            row(f"RULES without {rule.name}", programs, [r for r in RULES if r != rule])


if __name__ == "__main__":
    main()
