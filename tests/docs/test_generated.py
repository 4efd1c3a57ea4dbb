"""What pages leave to code: nothing is missing from it, and losses are counted."""

import json
import re
import sys

import pytest

import blockbuster as bb
from bench.peers.report import geometric_mean, ratio, records_of
from blockbuster.frontend.functions.refused import BY_NAME
from blockbuster.frontend.functions.table import PUBLIC
from blockbuster.frontend.no_values import WORDS
from blockbuster.ir.expr import FUNCTIONS
from blockbuster.ir.signatures import FUNCTIONALS
from blockbuster.rules import (
    PEELING_RULES,
    REPEATING_RULES,
    ROLLING_RULES,
    RULES,
    SAFETY_RULES,
    UNFUSING_RULES,
    WHOLE_RULES,
)
from tests.docs.pages import PAGES, ROOT

RUN = ROOT / "bench" / "results" / "2026-11-21-h200" / "programs.json"
MARK = re.compile(r"^<!-- generated: (\w+) -->$", re.MULTILINE)


@pytest.fixture(scope="module")
def generated():
    pytest.importorskip("matplotlib", reason="the results page is plotted with matplotlib")
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        import generated
    finally:
        del sys.path[0]
    return generated


@pytest.fixture(scope="module")
def measured(generated):
    return sys.modules["measured"]


def table_rows(text):
    """The cells of every line of the tables in a text."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def test_every_mark_of_a_page_has_a_function(generated):
    marks = {m for page in PAGES for m in MARK.findall((ROOT / page).read_text("utf-8"))}

    assert marks == set(generated.__all__) - {"contents"}


def test_lists_in_pages_are_current(generated, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    import filled_in

    stale = [str(path.relative_to(ROOT)) for path in filled_in.outdated()]
    if sys.version_info >= (3, 13) and "docs/command_line.md" in stale:
        stale.remove("docs/command_line.md")  # help is laid out otherwise from 3.13 on
    assert stale == [], "make pages writes them"


def test_every_public_name_is_described(generated):
    text = generated.api()

    for name in bb.__all__:
        assert re.search(rf":: blockbuster\.{name}\b", text), name


def test_every_rule_is_described_with_its_programs(generated):
    text = generated.rules()
    beside = (ROLLING_RULES, UNFUSING_RULES, REPEATING_RULES, WHOLE_RULES, SAFETY_RULES)
    sets = (RULES, PEELING_RULES, *beside)
    names = {rule.name for rules in sets for rule in rules}

    assert set(re.findall(r"^## (.+)$", text, re.MULTILINE)) == names
    assert text.count("```\nbefore ") == len(names)
    assert text.count("Source: ") == len(names)


def test_every_command_is_described(generated):
    text = generated.command_line()

    for command in re.findall(r"^    ([a-z-]+)", text.partition("options:")[0], re.MULTILINE):
        assert f"## {command}\n\n```\nusage: blockbuster {command} " in text
    assert text.count("usage: blockbuster") >= 8
    assert max(map(len, text.splitlines())) <= generated.HELP_WIDTH


def test_every_operator_of_the_text_form_is_described(generated):
    text = generated.vocabulary()

    for name in (*FUNCTIONALS, *FUNCTIONS):
        assert f"`{name}`" in text
    assert ["`dot`", "`[M,K]`, `[N,K]`", "`[M,N]`"] in table_rows(text)


def test_notebooks_are_shown_if_there_are_any(generated, tmp_path, monkeypatch):
    monkeypatch.setattr(generated, "ROOT", tmp_path)
    assert "Notebooks" not in generated.contents()

    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "01_blocks.ipynb").touch()
    assert ":caption: Notebooks\n\nnotebooks/01_blocks\n" in generated.contents()


def test_every_measured_kernel_is_shown_and_every_loss_is_counted(measured):
    text = measured.kernel_runs()
    times = json.loads(RUN.read_text("utf-8"))["times"]
    lost = sum(record["eager_us"] <= record["ours_us"] for record in times)

    rows = {tuple(row[:2]): row for row in table_rows(text) if len(row) == 8}
    for record in times:
        row = rows[record["program"], record["dtype"]]
        assert row[2:4] == [f"{record['ours_us']:.1f}", f"{record['eager_us']:.1f}"]
    assert f"{len(times) - lost} of {len(times)} kernels are faster" in text
    assert f"{lost} are not" in text
    assert lost > 0


def test_every_failed_check_is_shown(measured):
    checks = json.loads(RUN.read_text("utf-8"))["checks"]
    failed = [record for record in checks if not record["passed"]]
    text = measured.kernel_runs()

    assert f"{len(failed)} of {len(checks)} checks are above the limit" in text
    shown = [row[:3] for row in table_rows(text) if len(row) == 6]
    for record in failed:
        assert [record["program"], record["dtype"], record["kind"]] in shown


def test_plots_are_the_same_bytes_each_time(measured):
    def plots():
        measured.kernel_runs()
        measured.fusing_times()
        return [path.read_bytes() for path in sorted(measured.FIGURES.glob("*.svg"))]

    assert plots() == plots()


def test_pictures_are_of_the_programs_of_today(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    import draw_pictures

    for name, program in draw_pictures.programs().items():
        text = draw_pictures.place_of(name).read_text("utf-8")
        titles = draw_pictures.titled(bb.fuse(bb.lower(program)))
        assert re.findall(r"<text [^>]*>((?:Before|After)[^<]*)</text>", text) == list(titles)


QUOTED = {
    "decoding with few queries": "decode",
    "norms and softmax of rows, 1024 to 131072 columns": "rows",
    "small self-attention": "self_attention",
    "functions nobody tuned for": "others",
    "losses over a vocabulary": "losses",
    "masks: ALiBi, prefix, window, soft cap": "masks",
    "linear attention (Performer)": "performer",
    "chains of products": "gemm_chain",
    "gated networks, 1 to 8192 rows": "ffn",
    "LayerNorm or RMSNorm with a product": "norm_matmul",
    "float32 linear layers and attention": "float32",
    "plain products": "gemm",
    "plain attention, full and causal": "attention",
}
"""The suite behind each row of the README's table."""


def test_the_readme_quotes_the_raw_data(ratios):
    text = (ROOT / "README.md").read_text("utf-8")
    rows = {row[0]: row[1:4] for row in table_rows(text) if row[1].isdecimal()}
    assert rows.keys() == QUOTED.keys()

    for label, (count, mean, spread) in rows.items():
        found = [r for key, r in ratios.items() if r and key.startswith(f"{QUOTED[label]}/")]
        assert int(count) == len(found), label
        assert mean.strip("*") == f"{geometric_mean(found):.2f}", label
        assert spread == f"{min(found):.2f} to {max(found):.2f}", label


@pytest.fixture(scope="module")
def ratios():
    """The fastest peer's time over ours, by case."""
    folder = ROOT / "bench" / "results" / "2026-11-28-h100-evening"
    return {record["key"]: ratio(record) for record in records_of(folder)}


def test_every_function_and_refusal_is_listed(generated):
    listed, refused = generated.functions(), generated.refused()

    assert [name for name in PUBLIC if f"| `{name}` |" not in listed] == []
    assert [name for name in BY_NAME if f"`{name}`" not in refused] == []
    assert [name for name in WORDS if f"| `{name}` |" not in refused] == []
    assert "``" not in listed
