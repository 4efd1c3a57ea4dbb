"""Values materialized: the sites of fused programs, what becomes of them, and the way back."""

from random import Random

import pytest

import blockbuster as bb
from bench.programs import WORKLOADS
from blockbuster.errors import RuleError
from blockbuster.ir.ops import Functional
from blockbuster.ir.parse import parse
from blockbuster.rules import RULES, UNFUSING_RULES, Materialize, fuse, reasons, safe
from blockbuster.rules.restore import restore
from blockbuster.testing.generators import GENERATORS
from blockbuster.testing.sites import difference, flaw, sites
from blockbuster.view.draw import sites as drawn_sites
from tests.random_programs.norms import norm_programs
from tests.rules.numbers import assert_same_numbers
from tests.view.explorer_cases import unpacked

RULE = Materialize()


def fused(name):
    workload = WORKLOADS[name]
    return bb.fuse(bb.lower(bb.trace(workload.fn, **workload.inputs)))


def names(graph):
    return [match.detail for match in RULE.matches(graph)]


def apart(derivation):
    """With all materialized."""
    while (found := RULE.match(derivation.final)) is not None:
        derivation = derivation.then(found)
    return derivation


@pytest.mark.parametrize(
    ("name", "sites"),
    [
        ("rmsnorm-matmul", ["r per M", "y per M, K"]),
        ("rmsnorm-swiglu", ["r per M"]),
        ("layernorm-matmul", ["c, r per M", "row_sum over K per N"]),
        ("layer-norm", ["c, r per M"]),
        ("pairwise-scores", ["s per N", "s per M"]),
        ("attention", []),
        ("softmax-rows", []),
        ("swish-pair", []),
        ("row-statistics", []),
        ("matrix-vector", []),
    ],
)
def test_sites_have_names(name, sites):
    assert names(fused(name).final) == sites


def test_the_loop_of_dots_is_free_of_statistics():
    final = apart(fused("layernorm-matmul")).final
    rows, columns, matmul = (node.op for node in final.nodes)
    (around_columns,) = (op for _, op in matmul.body.of_type(type(matmul)))
    (loop,) = (op for _, op in around_columns.body.of_type(type(matmul)))

    assert [rows.dim, columns.dim, matmul.dim] == ["M", "N", "M"]
    assert loop.body.show().count(" = ") == 1
    assert "dot(" in loop.body.show()


def test_variances_are_centered_in_the_kernel_of_the_statistics():
    said = []
    stable = safe(apart(fused("layernorm-matmul")).final, said.append)
    rows, _, matmul = (node.op for node in stable.nodes)

    assert said == []
    assert [op.body.show().count("square") for _, op in rows.body.of_type(type(rows))] == [0, 1]
    assert "square" not in matmul.body.show()
    assert "rsqrt(maximum(" in rows.body.show()


def test_each_step_is_proved_and_replayed_from_json():
    made = apart(fused("layernorm-matmul"))
    back = restore(made.to_json(), (*RULES, *UNFUSING_RULES))

    assert [step.rule for step in made.steps[-2:]] == ["materialize", "materialize"]
    assert made.steps[-2].description.startswith("c, r per M leave M<N<K<dot ")
    assert "materialize" in made.show()
    assert made.replay() == made.final == made.snapshots[-1]
    assert back == made
    assert back.final == made.final
    report = made.prove(trials=4)
    assert [entry.proof.equal for entry in report.entries] == [True] * (len(made.steps) + 1)


def test_a_site_of_another_program_is_no_next_step():
    one, other = fused("rmsnorm-matmul"), fused("layernorm-matmul")

    with pytest.raises(ValueError, match="not one of the final program"):
        one.then(RULE.match(other.final))


@pytest.mark.parametrize("name", ["rmsnorm-matmul", "layernorm-matmul", "rmsnorm-swiglu"])
def test_rules_of_fusion_lead_back(name):
    before = fused(name).final
    after = apart(fused(name)).final
    again = fuse(after, RULES).final

    assert len(after.nodes) > 1
    assert len(again.nodes) == len(before.nodes) == 1
    assert again.buffered_edges() == ()
    assert difference(before, again) is None


def test_by_name():
    final = fused("layernorm-matmul").final

    assert bb.materialize(final, "c, r per M") == RULE.apply(RULE.match(final))
    with pytest.raises(RuleError, match="there are: c, r per M; row_sum over K per N"):
        bb.materialize(final, "r")
    with pytest.raises(RuleError, match="the program has none"):
        bb.materialize(fused("attention").final, "r")


def test_misc_operators_are_opaque():
    graph = parse(
        """graph(x: M,K[M,K]) {
          y = map M (x_1 in !x) {
            h = misc "f" : K[M,K] (!x_1)
            s = map K (a in !h) { t = row_sum(a) yield +t }
            z = map K (b in !x_1, s_1 = s) { u = row_scale(b, s_1) yield u }
            yield z
          }
          return y
        }""",
        {"f": lambda x: x},
    )

    assert reasons(RULE, graph) == ["s depends on misc, which is opaque"]


def test_what_is_moved():
    """LayerNorm + matmul: x once or twice for its rows, w once for its columns, not for each block.

    The safe form of the fused program reads x three times for each block of columns.
    """
    m, k, n = 2048, 4096, 4096
    sizes, blocks = {"M": m, "K": k, "N": n}, {"M": 16, "K": 64, "N": 32}

    def loaded(graph):
        moved = bb.traffic(graph, sizes, blocks).tensors
        return {name: sum(v.loaded_elements for t, v in moved.items() if t.name == name)
                for name in ("x", "y", "c", "r", "")}  # fmt: skip

    derivation = fused("layernorm-matmul")
    final, made = derivation.final, apart(derivation).final
    matmul = {"x": 32 * m * k, "y": 16 * k * n}
    lists = {"c": m, "r": m, "": 16 * n}

    assert loaded(final) == {**matmul, "c": 0, "r": 0, "": 0}
    assert loaded(safe(final)) == {**matmul, "x": 3 * 32 * m * k, "c": 0, "r": 0, "": 0}
    assert loaded(made) == {"x": 33 * m * k, "y": 17 * k * n, **lists}
    assert loaded(safe(made)) == {"x": 34 * m * k, "y": 17 * k * n, **lists}


@pytest.mark.parametrize("kind", GENERATORS)
@pytest.mark.parametrize("seed", range(8))
def test_every_site_of_fused_programs(kind, seed):
    final = fuse(GENERATORS[kind](Random(f"apart {seed}")), RULES).final
    for site in list(sites(final, UNFUSING_RULES))[:4]:
        wrong = flaw(site)
        assert wrong is None or wrong.kind == "unsettled", f"{site}: {wrong.story}"
        assert_same_numbers(final, site.after)


@pytest.mark.parametrize(("kind", "fewest"), [("value", 5), ("operand", 10)])
def test_norms_have_sites(kind, fewest):
    finals = [fuse(graph, RULES).final for graph in norm_programs(20)]
    found = [site for final in finals for site in sites(final, UNFUSING_RULES) if of(site, kind)]

    assert len(found) >= fewest
    for site in found:
        wrong = flaw(site)
        assert wrong is None or wrong.kind == "unsettled", f"{site}: {wrong.story}"
        assert_same_numbers(site.graph, site.after)


def of(site, kind):
    return all(role.startswith(f"{kind} ") for role in site.match.nodes)


def test_safe_forms_of_norms_have_operands():
    """In a safe form rows are normalized in the loop of the dots: each site takes one away."""
    finals = [safe(fuse(graph, RULES).final) for graph in norm_programs(8)]
    found = [site for final in finals for site in sites(final, UNFUSING_RULES)]
    found = [site for site in found if of(site, "operand")]

    assert len(found) >= 5
    for site in found:
        again = [other for other in sites(site.after, UNFUSING_RULES) if of(other, "operand")]
        before = [other for other in sites(site.graph, UNFUSING_RULES) if of(other, "operand")]
        assert len(again) < len(before)
        assert_same_numbers(site.graph, site.after)


def test_normalized_rows_are_stored_by_the_map_of_their_statistics():
    stable = safe(fused("layernorm-matmul").final)
    after = bb.materialize(stable, "y per M, K")
    rows, matmul = (node.op for node in after.nodes)
    (around_columns,) = (op for _, op in matmul.body.of_type(type(matmul)))
    (loop,) = (op for _, op in around_columns.body.of_type(type(matmul)))

    assert names(stable) == ["c, r per M", "y per M, K"]
    assert names(after) == ["c, r per M"]
    assert [op.dim for _, op in rows.body.of_type(type(rows))] == ["K", "K", "K"]
    assert [node.op for node in loop.body.nodes] == [Functional("dot")]
    assert difference(stable, after) is None


def test_statistics_that_are_stored_before_stay_apart_from_rows():
    after = bb.materialize(safe(fused("layernorm-matmul").final), "c, r per M")

    assert len(bb.materialize(after, "y per M, K").nodes) == 3


def test_a_loop_around_it_all_adds_no_site():
    """What every map around it changes is computed as often as it must be."""
    graph = parse(
        """graph(x: M,K[M,K], w: K[K]) {
          y = map M (x_1 in !x, w_1 = !w) {
            p = map K (a in !x_1, b in !w_1) { q = square(a) c = col_scale(q, b) yield c }
            yield p
          }
          return y
        }"""
    )

    assert names(graph) == []
    assert reasons(RULE, graph) == []


def test_the_explorer_and_pictures_show_the_steps(tmp_path):
    steps = fused("rmsnorm-matmul")
    made = steps.then(RULE.match(steps.final))
    page = tmp_path / "page.html"
    made.to_html(page, prove=False)
    (before, matched), (after, added) = drawn_sites(made.steps[-1])

    shown = unpacked(page.read_text(encoding="utf-8"))
    assert [step["rule"] for step in shown["steps"]].count("materialize") >= 1
    assert matched == [(0,)]
    assert after == made.final
    assert (0,) in added
    assert before == made.steps[-1].before
