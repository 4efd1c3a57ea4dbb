"""The command line as a user meets it: results on stdout, errors in a line or two, exit codes."""

import json
import subprocess
import sys

import pytest

from blockbuster.view.cli import main
from tests.parameters import rest_slow
from tests.view.explorer_cases import unpacked

MODEL = """
import blockbuster as bb

def attention(q, k, v):
    return bb.softmax((q @ k.T) * 0.1) @ v

def wrong(q, k, v):
    return q @ k @ v

def branch(q):
    return q if q.shape[0] > 3 else -q

def normed(x, w1, w2):
    return bb.rms_norm(bb.gelu(x @ w1)) * w2

def softplus(x):
    return bb.log(1 + bb.exp(x))

def geglu(x, w, v, o):
    return (bb.gelu(x @ w) * (x @ v)) @ o

def window(x):
    return bb.concat([x, x], 0)[2:4] * 2
"""
ATTENTION = ["--dims", "q=M D", "k=N D", "v=N L"]


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.py"
    path.write_text(MODEL)
    return str(path)


def run(capsys, *arguments):
    code = main(arguments)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_fuse_prints_the_steps_and_the_final_listing(capsys, model):
    code, out, _ = run(capsys, "fuse", f"{model}:attention", *ATTENTION)

    assert code == 0
    assert " 17 rule 1  fuse-maps        /M/L" in out
    assert "forall m in range(M):" in out
    assert "buffered edges are left" not in out


def test_fuse_shows_a_program_with_functions_of_whole_arrays_in_its_text_form(capsys, tmp_path):
    path = tmp_path / "model.py"
    path.write_text(
        "import blockbuster as bb\n\ndef joined(x, y, w):\n    return bb.concat([x, y], 0) @ w\n"
    )
    code, out, _ = run(capsys, "fuse", f"{path}:joined", "--dims", "x=M D", "y=N D", "w=D K")

    assert code == 0
    assert "with |A| = |M| + |N|" in out
    assert "not shown as loops, because concat axis 0 is a function of whole arrays" in out
    assert "1 buffered edge is left:" in out


def test_fuse_writes_json(capsys, model, tmp_path):
    path = tmp_path / "steps.json"

    assert run(capsys, "fuse", f"{model}:attention", *ATTENTION, "--json", str(path))[0] == 0
    data = json.loads(path.read_text())
    assert data["schema"] == "blockbuster.derivation/1"
    assert len(data["steps"]) == 17


def test_prove_proves_every_step_and_the_safe_form(capsys, model):
    code, out, _ = run(capsys, "prove", f"{model}:attention", *ATTENTION, "--trials", "2")

    assert code == 0
    assert "step 17 fuse-maps at /M/L" in out
    assert "start and final program" in out
    assert "safe form      tier B; randomized check, no proven bound" in out

    code, out, _ = run(capsys, "prove", f"{model}:attention", *ATTENTION, "--trials", "1", "--json")
    data = json.loads(out)
    assert code == 0
    assert data["schema"] == "blockbuster.proofs/1"
    assert data["proofs"][0]["tier"] == "A"


def test_explain_names_edges_and_reasons(capsys, model):
    dims = ["--dims", "x=M D", "w1=D K", "w2=K"]
    code, out, _ = run(capsys, "explain", f"{model}:normed", *dims, "--rules", "paper")

    assert code == 0
    assert "fuse-maps" in out
    code, out, _ = run(capsys, "explain", f"{model}:normed", *dims, "--rules", "paper", "--json")
    assert json.loads(out)[0]["rule"].startswith("fuse-maps")


def test_explain_says_what_is_at_stake(capsys, model):
    place = ["explain", f"{model}:geglu", "--dims", "x=M K", "w=K F", "v=K F", "o=F K"]
    sizes = ["--sizes", "M=4096,K=4096,F=11008"]
    _, out, _ = run(capsys, *place, *sizes)
    assert f"at stake: {2 * 2 * 4096 * 11008:,} bytes in float16" in out
    assert out.startswith("geglu: 2 kernels for sm_90, float16; ")
    code, _, err = run(capsys, *place, "--sizes", "M=64")
    assert code == 2
    assert "no size given for K, F" in err


@pytest.mark.slow
def test_explain_says_in_json_how_large_the_edges_are(capsys, model):
    place = ["explain", f"{model}:geglu", "--dims", "x=M K", "w=K F", "v=K F", "o=F K"]
    code, out, _ = run(capsys, *place, "--sizes", "M=4096,K=4096,F=11008", "--json")
    assert code == 0
    assert [edge["elements"] for edge in json.loads(out)] == [4096 * 11008]


def test_explain_and_emit_name_what_can_overflow(capsys, model):
    sentence = "can overflow: log (model.py:17) takes it as it is written"
    place = (f"{model}:softplus", "--dims", "x=M N")

    assert sentence in run(capsys, "explain", *place)[1]
    code, out, err = run(capsys, "emit", *place, "--sizes", "M=64", "N=64")
    assert code == 0
    assert "Note: exp (model.py:17) can overflow" in out
    assert sentence in err


def test_emit_writes_a_file_that_runs_alone(capsys, model, tmp_path):
    kernel = tmp_path / "flash.py"
    sizes = ["--sizes", "M=40,N=48", "D=16", "L=24", "--dtype", "float32"]
    arguments = ["emit", f"{model}:attention", *ATTENTION, *sizes, "-o", str(kernel)]

    assert run(capsys, *arguments)[0] == 0
    assert "import blockbuster" not in kernel.read_text()
    checked = subprocess.run(
        [sys.executable, str(kernel), "--check"], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stderr
    assert "PASS" in checked.stdout


@pytest.mark.parametrize("dims", [["q=M D", "k=N D"], [*ATTENTION[1:], "w=M"]])
def test_inputs_that_do_not_fit_point_at_the_users_function(capsys, model, dims):
    code, _, err = run(capsys, "fuse", f"{model}:attention", "--dims", *dims)

    assert code == 1
    assert "model.py:4: def attention(q, k, v):" in err
    assert "load.py" not in err


def test_a_dim_word_that_is_none_has_no_line_of_ours(capsys, model):
    _, _, err = run(capsys, "fuse", f"{model}:attention", "--dims", "q=M 0", *ATTENTION[2:])

    assert "'0' in 'M 0' is no dim" in err
    assert ".py:" not in err


def test_emit_takes_sizes_of_dims_that_fusion_left_out(capsys, model, tmp_path):
    place = (f"{model}:window", "--dims", "x=M=8 D", "-o", str(tmp_path / "kernel.py"))

    assert run(capsys, "emit", *place, "--sizes", "D=8")[0] == 0
    assert run(capsys, "emit", *place, "--sizes", "D=8", "A=16")[0] == 0
    code, _, err = run(capsys, "emit", *place, "--sizes", "D=8", "A=17")
    assert (code, "traced for 16" in err) == (2, True)
    code, _, err = run(capsys, "emit", *place, "--sizes", "D=8", "Z=1")
    assert (code, "unknown dim 'Z' in sizes" in err) == (2, True)


def test_sizes_that_contradict_fixed_ones_are_refused(capsys, model):
    place = ("emit", f"{model}:attention", "--dims", "q=M D=16", "k=N D", "v=N L")

    code, _, err = run(capsys, *place, "--sizes", "M=64,N=64,L=16,D=32")
    assert code == 2
    assert "D is 32 in --sizes, but the program was traced for 16" in err
    assert run(capsys, *place, "--sizes", "M=64,N=64,L=16", "--show", "schedule")[0] == 0


def test_emit_writes_what_costs_least_and_says_so(capsys, model, tmp_path):
    kernel = tmp_path / "geglu.py"
    place = ("emit", f"{model}:geglu", "--dims", "x=M K", "w=K F", "v=K F", "o=F K")
    sizes = ("--sizes", "M=4096,K=4096,F=11008")

    code, out, _ = run(capsys, *place, *sizes, "-o", str(kernel))

    assert code == 0
    assert out.startswith("geglu: 2 kernels for sm_90, float16; ")
    assert f"\nwrote {kernel}\n" in out
    assert "snapshot" not in out
    _, out, _ = run(capsys, *place, *sizes, "-o", str(kernel), "--details")
    assert "\n  chosen: snapshot 1, " in out
    assert "the other program, snapshot 2, " in " ".join(out.split())
    assert "\n    for snapshot 1\n" in kernel.read_text()
    code, out, err = run(capsys, *place, *sizes, "--snapshot", "2")
    assert (code, "in one Triton kernel" in out, "chosen" in out + err) == (0, True, False)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["fuse", "nofile.py:f"], 1, ["there is no file nofile.py"]),
        (["fuse", "{model}"], 1, ["expected FILE.py:FUNCTION"]),
        (["fuse", "{model}:nope"], 1, ["no function nope", "it defines attention, wrong"]),
        (["fuse", "{model}:attention"], 1, ["dims of the inputs are not given", "q="]),
        (["fuse", "{model}:attention", "--dims", "q=M D"], 1, ["needs the input 'k'"]),
        (["fuse", "{model}:attention", *ATTENTION, "z=K"], 1, ["no parameter 'z'"]),
        (["fuse", "{model}:wrong", *ATTENTION], 1, ["D and N differ", "model.py:8"]),
        (["fuse", "{model}:branch", "--dims", "q=M D"], 1, ["not a truth value", "model.py:11"]),
        (["emit", "{model}:attention", *ATTENTION], 2, ["no size given for M, D, N, L"]),
        (
            ["emit", "{model}:attention", *ATTENTION, "--sizes", "M=x"],
            2,
            ["--sizes wants whole numbers"],
        ),
        (
            ["emit", "{model}:attention", *ATTENTION, "--sizes", "M=8,N=8,D=8,L=8,Z=1"],
            2,
            ["unknown dim 'Z'"],
        ),
        (
            ["emit", "{model}:attention", *ATTENTION, "--sizes", "M=8,N=8,D=8,L=8", "-o", "/no/x"],
            1,
            ["/no/x", "No such file"],
        ),
        (["demo", "attention", "--sizes", "Z=3"], 2, ["unknown dim Z"]),
    ],
)
def test_bad_input_is_a_message_and_never_a_traceback(capsys, model, arguments, code, words):
    found, _, err = run(capsys, *(a.replace("{model}", model) for a in arguments))

    assert found == code
    assert "Traceback" not in err
    for word in words:
        assert word in err


def test_a_program_that_fails_to_import_is_reported_with_its_line(capsys, tmp_path):
    path = tmp_path / "broken.py"
    path.write_text("import os\nos.no_such_thing()\n")
    code, _, err = run(capsys, "fuse", f"{path}:f")
    assert (code, "broken.py:2" in err) == (1, True)
    path.write_text("def f(:\n")
    assert "not valid Python" in run(capsys, "fuse", f"{path}:f")[2]


@pytest.mark.parametrize(
    "command",
    ["demo", "fuse", "explain", "select", "emit", "draw", "view", "calibrate", "doctor"],
)
def test_every_command_has_help(capsys, command):
    with pytest.raises(SystemExit) as stopped:
        main([command, "--help"])
    assert stopped.value.code == 0
    assert "usage: blockbuster" in capsys.readouterr().out


def test_an_unknown_argument_shows_the_usage_of_its_command(capsys):
    for given, usage, unknown in (
        (["view", "steps.json", "--dims", "q=M D"], "view [-h]", "--dims q=M D"),
        (["--json", "view", "steps.json"], "[-h] COMMAND", "--json steps.json"),
    ):
        with pytest.raises(SystemExit, match="2"):
            main(given)
        said = capsys.readouterr().err
        assert said.startswith(f"usage: blockbuster {usage}")
        assert f"unrecognized arguments: {unknown}" in said


def test_doctor_says_what_is_used(capsys):
    code, out, _ = run(capsys, "doctor")
    assert code == 0
    assert "kernels run" in out
    assert "\nmachine " in out
    assert "ptxas" in out
    assert "nvdisasm" in out


@pytest.mark.parametrize(
    "example", rest_slow(["layernorm-matmul", "rmsnorm-swiglu"], ["layernorm-matmul"])
)
def test_demo_passes_at_ragged_sizes(capsys, example, tmp_path):
    sizes = {"layernorm-matmul": "M=33,K=48,N=20", "rmsnorm-swiglu": "M=20,D=24,K=33,N=17"}
    output = ["-o", str(tmp_path / "kernel.py")]
    code, out, _ = run(capsys, "demo", example, "--sizes", sizes[example], *output)
    assert code == 0, out
    assert "every check passed" in out
    assert (tmp_path / "kernel.py").is_file()


@pytest.mark.parametrize(
    ("options", "found", "missing"),
    [
        ([], "p-0-in0", "interior"),
        (["--step", "0"], "interior", "before"),
        (["--step", "2"], "before-n-0", "collapsed"),
        (["--step", "0", "--depth", "0"], "map collapsed", "n-0-0"),
    ],
)
def test_draw_writes_a_picture(capsys, model, tmp_path, options, found, missing):
    path = tmp_path / "picture.dot"
    code, out, _ = run(capsys, "draw", f"{model}:attention", *ATTENTION, *options, "-o", str(path))

    assert (code, out) == (0, f"wrote {path}\n")
    text = path.read_text()
    assert found in text
    assert missing not in text


def test_draw_refuses_a_step_that_is_not_there(capsys, model, tmp_path):
    path = tmp_path / "picture.dot"
    arguments = [f"{model}:attention", *ATTENTION, "--step", "18", "-o", str(path)]
    code, _, error = run(capsys, "draw", *arguments)

    assert code == 2
    assert "--step 18: the derivation has steps 1 to 17" in error
    assert not path.exists()


def test_draw_writes_svg(capsys, model, tmp_path):
    path = tmp_path / "picture.svg"

    assert run(capsys, "draw", f"{model}:attention", *ATTENTION, "-o", str(path))[0] == 0
    assert path.read_text().startswith("<svg")


def test_fuse_and_view_write_the_explorer(capsys, model, tmp_path):
    page, steps = tmp_path / "page.html", tmp_path / "steps.json"
    sizes = ["--sizes", "M=40,N=48", "D=16,L=24", "--blocks", "N=3", "--trials", "0"]
    arguments = [f"{model}:attention", *ATTENTION, "--html", str(page), "--json", str(steps)]

    code, out, _ = run(capsys, "fuse", *arguments, *sizes)
    assert code == 0
    assert f"wrote {page}" in out
    text = page.read_text()
    assert "<title>attention: derivation</title>" in text
    assert '<script type="text/plain" id="plan">' in text
    shown = unpacked(text)
    (n,) = [dim for dim in shown["dims"] if dim["name"] == "N"]
    assert (n["size"], n["blocks"]) == (48, 3)
    assert shown["proof"] is None

    code, out, _ = run(capsys, "view", str(steps), "--trials", "1")
    assert code == 0
    text = (tmp_path / "steps.html").read_text()
    assert "<title>steps: derivation</title>" in text
    assert 'id="plan">' not in text, "no array program is at hand"
    assert unpacked(text)["proof"]["word"] == "equal"


def test_view_refuses_what_is_no_derivation(capsys, tmp_path):
    path = tmp_path / "other.json"
    path.write_text('{"schema": "blockbuster.proofs/1"}')

    code, _, err = run(capsys, "view", str(path))
    assert code == 2
    assert "expected the schema blockbuster.derivation/1" in err
    assert "blockbuster.proofs/1" in err
    assert run(capsys, "view", str(path), "-o", str(path))[0] == 2
    assert run(capsys, "view", str(tmp_path / "none.json"))[0] == 1
    assert list(tmp_path.iterdir()) == [path]


def test_a_page_for_functions_of_whole_arrays_is_read_back(capsys, tmp_path):
    path = tmp_path / "model.py"
    path.write_text(
        "import blockbuster as bb\nimport numpy as np\n\n"
        "def ranked(x):\n    return bb.custom(np.sort, bb.exp(x), shape=x.shape) + 1\n"
    )
    steps = tmp_path / "steps.json"
    arguments = [f"{path}:ranked", "--dims", "x=M N", "--text", "--json", str(steps)]
    assert run(capsys, "fuse", *arguments)[0] == 0

    code, _, err = run(capsys, "view", str(steps), "--trials", "1")
    assert code == 0, err
    assert unpacked((tmp_path / "steps.html").read_text())["proof"]["word"] == "equal"
