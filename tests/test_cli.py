import csv
import dataclasses
import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import typer

import layouts
import vicinal
from vicinal import Bank, Embeddings
from vicinal.cli import main
from vicinal.cli.commands import app
from vicinal.evaluation import Evaluation, evaluate

COMMANDS = typer.main.get_command(app).commands
EVERY = {
    **COMMANDS,
    **{f"{name} {one}": found for name in COMMANDS for one, found in getattr(COMMANDS[name], "commands", {}).items()},
}
SLOW = ("demo", "reproduce", "train")  # of the examples
DOCS = Path(__file__).parent.parent / "docs" / "command-line.md"
_RNG = np.random.default_rng(11)
N, M, D, C = 120, 60, 5, 3
_CENTRES = 3 * _RNG.normal(size=(C, D))
LABELS, TRUTH = _RNG.integers(0, C, N), _RNG.integers(0, C, M)
VECTORS = (_CENTRES[LABELS] + 2 * _RNG.normal(size=(N, D))).astype(np.float32)
QUERIES = (_CENTRES[TRUTH] + 2 * _RNG.normal(size=(M, D))).astype(np.float32)
LOGITS = -((QUERIES[:, None] - _CENTRES) ** 2).sum(axis=2) / 8
INPUTS = Embeddings(QUERIES, logits=LOGITS, labels=TRUTH)
BANK = Bank(VECTORS, LABELS)
_CODES = _RNG.integers(0, C, 500)
_HELD = (_CENTRES[_CODES] + 2 * _RNG.normal(size=(500, D))).astype(np.float32)
HELD_OUT = Embeddings(_HELD, logits=-((_HELD[:, None] - _CENTRES) ** 2).sum(axis=2) / 8, labels=_CODES)
SECOND = Embeddings(_RNG.normal(size=(M, 2)), logits=LOGITS + _RNG.normal(size=(M, C)), labels=TRUTH)
GUARD = vicinal.Guard.fit_arrays(BANK, HELD_OUT, risk=0.2)


@pytest.fixture(scope="session")
def saved_guard(tmp_path_factory):
    place = tmp_path_factory.mktemp("guards") / "guard"
    GUARD.save(place)
    return place


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch, saved_guard):
    """A folder to work in, with the files that the examples name."""
    monkeypatch.chdir(tmp_path)
    np.savez("train.npz", vectors=VECTORS, labels=LABELS)
    np.savez("test.npz", vectors=QUERIES, logits=LOGITS, labels=TRUTH)
    np.savez("validation.npz", vectors=_HELD, logits=HELD_OUT.logits, labels=_CODES)
    np.savez("second.npz", vectors=SECOND.vectors, logits=SECOND.logits, labels=TRUTH)
    BANK.save("bank.safetensors")
    shutil.copytree(saved_guard, "guard")
    return tmp_path


def process(*words, **options):
    """A real process."""
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=120, **options)


# Help, and what it promises.


@pytest.mark.parametrize("command", [None, *EVERY])
def test_help_ends_in_an_example(command, done):
    out = done(f"{command or ''} --help")
    epilog = (EVERY[command] if command else typer.main.get_command(app)).epilog
    example = epilog.split("\n\n")[-1]
    assert out.rstrip().split("\n")[-1].strip() == example
    assert example.startswith(f"vicinal {command or ''}")


def examples():
    for name, command in EVERY.items():
        for line in command.epilog.split("\n\n")[1:]:
            slow = [pytest.mark.slow] if name in SLOW else []
            yield pytest.param(line, marks=slow, id=line)


@pytest.fixture(scope="module")
def data_root(tmp_path_factory):
    """Tiny data sets in the official layouts."""
    root = tmp_path_factory.mktemp("data")
    layouts.cifar100(root, n=300)
    layouts.mnist(root, packed=False)
    return root


@pytest.mark.parametrize("line", list(examples()))
def test_the_examples_of_the_help_work(line, done, data_root, monkeypatch):
    monkeypatch.setenv("VICINAL_DATA", str(data_root))
    words = line.removeprefix("vicinal ")
    assert done(words)
    for name in re.findall(r"--out (\S+)", words):
        assert Path(name).stat().st_size > 0


def test_without_words_the_help_is_shown(done):
    assert done("") == done("--help")
    for command in COMMANDS:
        assert f" {command} " in done("")


def test_version(done):
    assert done("--version") == f"vicinal {vicinal.__version__}\n"


def test_the_installed_command_is_main():
    (found,) = (one for one in importlib.metadata.entry_points(group="console_scripts") if one.name == "vicinal")
    assert found.load() is main


@pytest.mark.parametrize("words", [["--help"], ["score", "--help"], ["--version"], ["score"], ["nothing"]])
def test_starting_up_imports_nothing_heavy(words):
    code = (
        "import sys; from vicinal.cli import main; main(sys.argv[1:]); print('LOADED', *sys.modules, file=sys.stderr)"
    )
    loaded = process("-c", code, *words).stderr.split("LOADED")[1].split()
    assert "typer" in loaded
    assert not {"numpy", "scipy", "sklearn", "torch", "numba", "pyarrow", "matplotlib", "safetensors"} & set(loaded)


@pytest.mark.parametrize("words", [["--help"], ["explain", "--help"], ["evaluate", "test.npz", "--samples", "20"]])
def test_no_colours_when_not_a_terminal(words):
    environment = {key: value for key, value in os.environ.items() if key not in ("FORCE_COLOR", "PY_COLORS")}
    found = process("-m", "vicinal", *words, env={**environment, "GITHUB_ACTIONS": "true", "TERM": "xterm-256color"})
    assert found.returncode == 0
    assert found.stdout
    assert "\x1b" not in found.stdout + found.stderr


# What each command does.


def test_bank_holds_the_points_of_the_file(done):
    assert done("bank train.npz --out b.safetensors") == "b.safetensors: 120 points of 5 dimensions, 3 classes\n"
    bank = Bank.load("b.safetensors")
    np.testing.assert_array_equal(bank.vectors, VECTORS)
    np.testing.assert_array_equal(bank.labels, LABELS)
    assert bank.facts == {"file": "train.npz"}


def test_bank_in_json(done):
    found = json.loads(done("bank train.npz --out b.safetensors --json"))
    expected = {"bank": "b.safetensors", "points": 120, "dimension": 5, "classes": [0, 1, 2]}
    assert found == {**expected, "facts": {"file": "train.npz"}}


def test_bank_with_other_names(done):
    np.savez("other.npz", features=VECTORS, target=LABELS, labels=["not", "these"])
    done("bank other.npz --vectors features --labels target --out b.safetensors")
    np.testing.assert_array_equal(Bank.load("b.safetensors").labels, LABELS)


OPTIONS = [
    ("--bank bank.safetensors", lambda: vicinal.distance(BANK, QUERIES, INPUTS.predicted)),
    (
        "--bank bank.safetensors --k 7 --kernel inverse",
        lambda: vicinal.distance(BANK, QUERIES, INPUTS.predicted, k=7, kernel="inverse"),
    ),
    ("--bank bank.safetensors --k all", lambda: vicinal.distance(BANK, QUERIES, INPUTS.predicted, k="all")),
    (
        "--bank bank.safetensors --score kth_distance --unit --k 3",
        lambda: vicinal.kth_distance(BANK, QUERIES, k=3, unit=True),
    ),
    ("--bank bank.safetensors --score trust_ratio", lambda: vicinal.trust_ratio(BANK, QUERIES, INPUTS.predicted)),
    (
        "--bank bank.safetensors --score mahalanobis --relative",
        lambda: vicinal.mahalanobis(BANK, QUERIES, INPUTS.predicted, relative=True),
    ),
    ("--score margin --temperature 2.5", lambda: vicinal.margin(LOGITS, temperature=2.5)),
    ("--score entropy", lambda: vicinal.entropy(LOGITS)),
    ("--score top_two_gap", lambda: vicinal.top_two_gap(LOGITS)),
    ("--score max_logit", lambda: vicinal.max_logit(LOGITS)),
    ("--score energy", lambda: vicinal.energy(LOGITS)),
]


@pytest.mark.parametrize(("options", "expected"), OPTIONS)
def test_score_gives_what_the_library_gives(options, expected, done):
    trust = expected()
    found = json.loads(done(f"score test.npz {options} --json"))
    assert (found["score"], found["predictions"], found["notes"]) == (trust.name, M, [])
    rows = found["rows"]
    assert [row["row"] for row in rows] == list(range(M))
    assert [row["predicted"] for row in rows] == INPUTS.predicted.tolist()
    assert [row["label"] for row in rows] == TRUTH.tolist()
    assert [row["confidence"] for row in rows] == trust.confidence.tolist()
    assert [row["log_odds"] for row in rows] == trust.log_odds.tolist()
    assert ("rival" in rows[0]) == (trust.rival is not None)
    if trust.rival is not None:
        assert [row["rival"] for row in rows] == trust.rival.labels.tolist()


def _read_csv(path):
    with open(path, encoding="utf-8", newline="") as file:
        return [{key: float(value) for key, value in row.items()} for row in csv.DictReader(file)]


READERS = {
    "x.csv": _read_csv,
    "x.jsonl": lambda path: [json.loads(line) for line in Path(path).read_text().splitlines()],
    "x.parquet": lambda path: pq.read_table(path).to_pylist(),
}


@pytest.mark.parametrize("name", READERS)
def test_score_writes_the_same_rows_to_every_kind_of_file(name, done):
    rows = json.loads(done("score test.npz --bank bank.safetensors --json"))["rows"]
    summary = json.loads(done(f"score test.npz --bank bank.safetensors --json --out {name}"))
    assert summary == {"score": "distance", "predictions": M, "notes": [], "out": name}
    assert READERS[name](name) == rows


def test_score_in_words_shows_the_least_trusted(done):
    trust = vicinal.distance(BANK, QUERIES, INPUTS.predicted, k=9)
    first, _, header, *lines = done("score test.npz --bank bank.safetensors --k 9").splitlines()
    low, high = trust.log_odds.min(), trust.log_odds.max()
    assert first.startswith(f"distance of 60 predictions: log-odds from {low:.4g} to {high:.4g}, median ")
    assert header.split() == ["row", "predicted", "label", "confidence", "log_odds", "rival", "rival_log_odds"]
    assert [int(line.split()[0]) for line in lines] == np.argsort(trust.log_odds, kind="stable")[:5].tolist()


def test_score_says_where_a_predicted_class_is_not_in_the_bank(done):
    np.savez("test.npz", vectors=QUERIES, predicted=np.where(np.arange(M) == 4, 9, TRUTH))
    note = "1 predictions name a class that the bank does not have (9)"
    assert f"note: {note}" in done("score test.npz --bank bank.safetensors")
    found = json.loads(done("score test.npz --bank bank.safetensors --json"))
    assert found["notes"] == [note]
    assert found["rows"][4]["confidence"] == 0


def test_score_of_probabilities_that_are_said_to_be_such(done):
    shares = np.exp(LOGITS) / np.exp(LOGITS).sum(axis=1, keepdims=True)
    np.savez("shares.npz", vectors=QUERIES, p=shares)
    found = json.loads(done("score shares.npz --score margin --probabilities p --json"))
    np.testing.assert_allclose([row["confidence"] for row in found["rows"]], shares.max(axis=1))


def test_score_of_the_bank_itself_leaves_each_point_out(done):
    found = json.loads(done("score train.npz --predicted labels --bank bank.safetensors --k 5 --exclude-self --json"))
    expected = vicinal.distance(BANK, VECTORS, LABELS, k=5, exclude_self=True)
    assert [row["log_odds"] for row in found["rows"]] == expected.log_odds.tolist()


def _evaluated(names, **options):
    scores = {"distance": lambda e: vicinal.distance(BANK, e.vectors, e.predicted, k=9)}
    scores.update(
        {name: lambda e, name=name: getattr(vicinal, name)(e.logits) for name in ("margin", "entropy", "energy")}
    )
    return evaluate(INPUTS, {name: scores[name] for name in names}, **options)


def test_evaluate_prints_the_table(done):
    expected = _evaluated(["distance", "margin", "entropy"], samples=50)
    assert done("evaluate test.npz --bank bank.safetensors --k 9 --samples 50") == f"{expected}\n"
    assert "distance" not in done("evaluate test.npz --samples 50")


def test_evaluate_draws_the_table_on_a_terminal(run, monkeypatch, capsys):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "140")
    monkeypatch.setenv("TERM", "dumb")
    code, out, _ = run("evaluate test.npz --score margin --samples 50")
    assert code == 0
    assert "┃ AUROC" in out
    assert f"{_evaluated(['margin'], samples=50).interval('margin').value:.3f}" in out


def test_evaluate_in_json_with_every_option(done):
    line = "--samples 40 --seed 3 --level 0.9 --coverage 0.5 --risk 0.1 --bins 5 --json"
    found = json.loads(done(f"evaluate test.npz --bank bank.safetensors --k 9 --score energy --score distance {line}"))
    options = {"samples": 40, "seed": 3, "level": 0.9, "coverage": 0.5, "risk": 0.1, "bins": 5}
    expected = _evaluated(["energy", "distance"], **options).to_json()
    assert found == {**expected, "facts": {"file": "test.npz"}}
    assert {row["score"] for row in found["intervals"]} == {"energy", "distance"}


def test_evaluate_writes_a_table_or_the_whole_evaluation(done):
    expected = _evaluated(["margin"], samples=50).rows()
    done("evaluate test.npz --score margin --samples 50 --out x.parquet --json")
    rows = pq.read_table("x.parquet").to_pylist()
    np.testing.assert_equal(rows, expected)
    done("evaluate test.npz --score margin --samples 50 --out x.json")
    np.testing.assert_equal(Evaluation.load("x.json").rows(), expected)


def test_explain_in_words_and_in_json(done):
    from vicinal.explain import choose, explain

    trust = vicinal.distance(BANK, QUERIES, INPUTS.predicted, k=9)
    line = "explain test.npz --bank bank.safetensors --k 9"
    rows = explain(trust, [3, 0], labels=TRUTH, shown=2)
    assert done(f"{line} --row 3 --row 0 --shown 2") == "\n\n".join(map(str, rows)) + "\n"
    assert json.loads(done(f"{line} --row 3 --row 0 --shown 2 --json")) == [row.to_json() for row in rows]
    least = explain(trust, choose(trust, 5), labels=TRUTH)
    assert json.loads(done(f"{line} --json")) == [row.to_json() for row in least]
    of_class = explain(trust, choose(trust, 2, of_class=1), labels=TRUTH)
    assert json.loads(done(f"{line} --least 2 --class 1 --json")) == [row.to_json() for row in of_class]


def test_explain_writes_a_row_for_each_neighbour(done):
    done("explain test.npz --bank bank.safetensors --least 2 --shown 3 --out why.jsonl")
    rows = READERS["x.jsonl"]("why.jsonl")
    assert [row["rank"] for row in rows] == [0, 1, 2, 0, 1, 2]
    assert rows[0]["neighbor_label"] == LABELS[rows[0]["neighbor_row"]]


def test_fit_gives_the_guard_that_the_library_gives(done):
    Path("names.txt").write_text("ant\nbee\ncat\n")
    line = "fit validation.npz --bank bank.safetensors --risk 0.2 --class-names names.txt --out new"
    said = done(line)
    guard = vicinal.Guard.load("new")
    assert said == f"{guard}\nwritten to new\n"
    assert guard.names == {0: "ant", 1: "bee", 2: "cat"}
    expected, found = GUARD(INPUTS), guard(INPUTS)
    np.testing.assert_array_equal(found.probability, expected.probability)
    np.testing.assert_array_equal(found.decision, expected.decision)
    content = json.loads(done(f"{line} --json"))
    assert content["promised"] == {"false_alarms": 0.05, "risk": 0.2, "delta": 0.05}
    assert (content["guard"], content["score"], content["points"], content["k"]) == ("new", "fused", N, 50)
    assert content["shares"] == GUARD.triage.shares


def test_fit_hands_its_settings_on(done):
    options = "--score margin --novelty energy --method isotonic --k 7 --false-alarms 0.2 --risk 0.3 --delta 0.1"
    done(f"fit validation.npz --bank bank.safetensors {options} --out new")
    guard = vicinal.Guard.load("new")
    assert (guard.score, guard.novelty, guard.calibration.method, guard.k) == ("margin", "energy", "isotonic", 7)
    assert (guard.triage.false_alarms, guard.triage.risk, guard.triage.delta) == (0.2, 0.3, 0.1)


def test_a_cautious_fit_says_so_in_its_answer(done):
    np.savez("few.npz", vectors=_HELD[:20], logits=HELD_OUT.logits[:20], labels=_CODES[:20])
    said = done("fit few.npz --bank bank.safetensors --out new").splitlines()
    notes = [line for line in said if line.startswith("note: ")]
    assert len(notes) == 4
    assert "note: Guard.fit: 20 calibration rows are fewer than 90" in notes[0]
    assert "promised: nothing" in said


def test_decide_gives_what_the_guard_gives(done):
    expected = GUARD(INPUTS)
    found = json.loads(done("decide test.npz --guard guard --json"))
    assert found == {"decisions": M, "shares": expected.shares(), "notes": [], "rows": expected.records()}
    done("decide test.npz --guard guard --out x.parquet")
    columns = {name: column.tolist() for name, column in expected.columns().items()}
    assert pq.read_table("x.parquet").to_pydict() == columns
    counts = {name: int((expected.decision == name).sum()) for name in ("accept", "unsure", "novel")}
    first, second, third, header, *lines = done("decide test.npz --guard guard").splitlines()
    assert first == "60 inputs: {accept} accepted, {unsure} unsure, {novel} novel".format(**counts)
    wrong = int((~INPUTS.correct)[expected.decision == "accept"].sum())
    assert second.startswith(f"of the accepted predictions {wrong} are wrong ({wrong / counts['accept']:.2%})")
    assert third == "the least likely right of those not accepted:"
    assert header.split() == list(columns)
    held = np.flatnonzero(expected.decision != "accept")
    order = held[np.argsort(expected.probability[held], kind="stable")][:5]
    assert [int(line.split()[0]) for line in lines] == order.tolist()


def test_decide_refuses_embeddings_of_another_network(done, run):
    facts = {"fingerprint": "a" * 64, "layer": "input of fc"}
    Bank(VECTORS, LABELS, facts=facts).save("own.safetensors")
    dataclasses.replace(HELD_OUT, facts=facts).save("validation.safetensors")
    dataclasses.replace(INPUTS, facts=facts).save("test.safetensors")
    dataclasses.replace(INPUTS, facts={**facts, "fingerprint": "b" * 64}).save("other.safetensors")
    done("fit validation.safetensors --bank own.safetensors --risk 0.2 --out new")
    assert json.loads(done("decide test.safetensors --guard new --json"))["notes"] == []
    code, out, err = run("decide other.safetensors --guard new")
    assert (code, out) == (2, "")
    assert "with the fingerprint aaaa" in err
    (note,) = json.loads(done("decide test.npz --guard new --json"))["notes"]
    assert "do not say which network they come from" in note
    code, _, err = run("fit other.safetensors --bank own.safetensors --out another")
    assert code == 2
    assert "calibration: expected embeddings of the network of the training points" in err


@pytest.mark.parametrize(("name", "by_class"), [("density", False), ("mahalanobis", True), ("energy", False)])
def test_novelty_gives_what_the_library_gives(name, by_class, done):
    from vicinal.novelty import Detector, scores

    line = "novelty test.npz --bank bank.safetensors --known validation.npz --false-alarms 0.1 --k 7"
    found = json.loads(done(f"{line} --score {name} {'--by-class' if by_class else ''} --json"))
    asked, known = (
        dataclasses.replace(scores(BANK, e, names=[name], k=7)[name], predicted=e.predicted) for e in (INPUTS, HELD_OUT)
    )
    detector = Detector.fit(known, by_class=by_class)
    assert [row["p_value"] for row in found["rows"]] == detector.p_value(asked).tolist()
    assert [row["novel"] for row in found["rows"]] == detector.novel(asked, 0.1).tolist()
    assert [row[name] for row in found["rows"]] == asked.log_odds.tolist()
    assert (found["score"], found["inputs"], found["novel"]) == (name, M, int(detector.novel(asked, 0.1).sum()))


def test_novelty_in_words_shows_the_most_unusual(done):
    rows = json.loads(done("novelty test.npz --bank bank.safetensors --known validation.npz --json"))["rows"]
    said = done("novelty test.npz --bank bank.safetensors --known validation.npz --out x.jsonl").splitlines()
    assert READERS["x.jsonl"]("x.jsonl") == rows
    assert said[0].startswith(f"{sum(row['novel'] for row in rows)} of 60 inputs are called novel by density")
    order = np.argsort([row["p_value"] for row in rows], kind="stable")[:5]
    assert [int(line.split()[0]) for line in said[3:]] == order.tolist()


def _ensemble():
    from vicinal.ensemble import Member

    Bank(_RNG.normal(size=(80, 2)), np.arange(80) % C).save("second.safetensors")
    banks = [BANK, Bank.load("second.safetensors")]
    parts = zip(("test.npz", "second.npz"), (INPUTS, SECOND), banks, strict=True)
    return [Member.of(name, embeddings, bank, k=7) for name, embeddings, bank in parts]


@pytest.mark.parametrize(
    ("options", "rule", "by", "how"),
    [
        ("--rule majority", "majority", None, "softmax"),
        ("--rule weighted --by entropy", "weighted", "entropy", "softmax"),
        ("--bank bank.safetensors --bank second.safetensors", "average", None, "summed"),
        (
            "--bank bank.safetensors --bank second.safetensors --rule dictator --by distance --judge own",
            *("dictator", "distance", "own"),
        ),
    ],
)
def test_ensemble_gives_what_the_library_gives(options, rule, by, how, done):
    from vicinal.ensemble import combine, judge

    members = _ensemble()
    combined = combine(members, rule, by=by)
    trust = judge(members, combined.predicted, how, k=7)
    found = json.loads(done(f"ensemble test.npz second.npz {options} --k 7 --json"))
    assert [row["predicted"] for row in found["rows"]] == combined.predicted.tolist()
    assert [row["tied"] for row in found["rows"]] == combined.tied.tolist()
    assert [row["log_odds"] for row in found["rows"]] == trust.log_odds.tolist()
    assert [row["label"] for row in found["rows"]] == TRUTH.tolist()
    alone = {member.name: float((member.predicted == TRUTH).mean()) for member in members}
    assert found["accuracy"] == {**alone, "together": float((combined.predicted == TRUTH).mean())}
    assert (found["rule"], found["by"], found["judge"]) == (rule, by, how)


def test_ensemble_and_decide_without_labels_say_nothing_of_accuracy(done):
    np.savez("bare.npz", vectors=QUERIES, logits=LOGITS)
    np.savez("other.npz", vectors=SECOND.vectors, logits=SECOND.logits)
    assert json.loads(done("ensemble bare.npz other.npz --json"))["accuracy"] == {}
    assert "accuracy" not in done("ensemble bare.npz other.npz")
    assert "label" in json.loads(done("ensemble bare.npz second.npz --json"))["rows"][0]
    assert "wrong" not in done("decide bare.npz --guard guard")


def test_ensemble_in_words_and_the_hybrid(done):
    _ensemble()
    line = "ensemble test.npz second.npz --bank bank.safetensors --bank second.safetensors --k 7"
    said = done(f"{line} --judge hybrid --embedding second.npz --out x.csv").splitlines()
    assert said[0].startswith("2 networks decide by average of 60 inputs")
    assert [line.split()[-1] for line in said[1:4]] == ["test.npz", "second.npz", "together"]
    assert said[4].startswith("hybrid of 60 predictions")
    assert len(Path("x.csv").read_text().splitlines()[1:]) == M


class _Shown:
    def __str__(self):
        return "what the demo found"

    def to_json(self):
        return {"found": 1}


def test_demo_hands_its_options_on_and_prints_what_comes(done, monkeypatch):
    asked = []
    monkeypatch.setattr("vicinal.demo.run", lambda out, *, seed: asked.append((out, seed)) or _Shown())
    assert done("demo") == "what the demo found\n"
    assert json.loads(done("demo --out other.png --seed 4 --json")) == {"found": 1}
    assert asked == [(Path("demo.png"), 0), (Path("other.png"), 4)]


# What bad input gets: one line on standard error, and exit code 2.

REFUSED = [
    ("score tset.npz --score margin", "tset.npz: expected a file, got nothing there; did you mean 'test.npz'?"),
    ("score cut.npz --score margin", "cut.npz: expected a .npz file"),
    ("score cut.safetensors --score margin", "cut.safetensors: expected a .safetensors file of plain arrays"),
    ("score foreign.npz --score margin", "foreign.npz: expected a .npz file"),
    ("score test.csv --score margin", "test.csv: expected a file that ends in .safetensors, .npz, .npy, .parquet"),
    ("score test.npz --score margin --logits logit", "expected an array 'logit', got vectors, logits, labels; did you"),
    ("score train.npz --score margin", "train.npz: expected an array 'logits', got vectors, labels"),
    ("score test.npz --score magrin", "got 'magrin'; did you mean 'margin'?"),
    ("score test.npz", "distance: expected a bank of training points (--bank), got none"),
    ("score test.npz --bank no.safetensors", "no.safetensors: expected a file, got nothing there"),
    ("score test.npz --bank cut.safetensors", "that are not one, or are cut short"),
    ("score test.npz --bank foreign.safetensors", "foreign.safetensors: expected a safetensors file, got 5 bytes"),
    ("score test.npz --bank train.npz", "make one with: vicinal bank FILE --out bank.safetensors"),
    ("score test.npz --bank own.safetensors", "expected a vicinal.bank file, got 'vicinal.embeddings'"),
    ("score narrow.npz --bank bank.safetensors", "expected 5 columns, as in the bank, got 4"),
    (
        "score nan.npz --score margin",
        "nan.npz: vectors: expected finite numbers, got NaN in row 0, column 1 (1 such row)",
    ),
    (
        "score test.npz --bank bank.safetensors --k 121",
        "k: expected a whole number from 1 to 120, the size of the bank",
    ),
    ("score test.npz --bank bank.safetensors --k 0", "k: expected a whole number from 1 to 120"),
    ("score test.npz --bank bank.safetensors --k some", "k: expected a whole number or 'all', got 'some'"),
    ("score test.npz --bank bank.safetensors --kernel cuont", "got 'cuont'; did you mean 'count'?"),
    ("score test.npz --bank bank.safetensors --exclude-self", "expected the bank's own 120 rows"),
    ("score test.npz --score margin --k 3", "k: expected a score that takes it (distance, kth_distance), got margin"),
    ("score test.npz --score margin --temperature 0", "temperature: expected a number in [1e-100, 1e+100]"),
    ("score test.npz --score margin --temperature hot", "Invalid value for '--temperature'"),
    ("score test.npz --score margin --out x.txt", "x.txt: expected a file that ends in .csv, .parquet, .jsonl"),
    ("score test.npz --score margin --out no/x.csv", "no/x.csv: expected an existing folder no; create it first"),
    ("score test.npz --score energy --probabilities logits", "test.npz: logits: expected values from 0 to 1"),
    (
        "score test.npz --score energy --logits logits --probabilities p",
        "expected one of the two to be named, got both",
    ),
    ("evaluate bank.safetensors --score margin", "bank.safetensors: expected an array 'predicted' or 'logits'"),
    ("evaluate train.npz --predicted labels", "scores: expected a bank or logits to compute any from, got neither"),
    ("evaluate test.npz --score margin --samples 0", "samples: expected a whole number from 1 to 1000000, got 0"),
    (
        "evaluate test.npz --score margin --out x.txt",
        "x.txt: expected a file that ends in .csv, .parquet, .jsonl, .json",
    ),
    ("bank test.npz --out b.npz", "b.npz: expected a file that ends in .safetensors, got '.npz'"),
    ("bank test.npz --labels logits --out b.safetensors", "test.npz: labels: expected shape (n,), got (60, 3)"),
    ("bank test.npz --labels classes --out b.safetensors", "expected an array 'classes', got vectors, logits, labels"),
    ("explain test.npz --bank bank.safetensors --class 12", "class: expected one that is predicted (0, 1, 2), got 12"),
    ("explain test.npz --bank bank.safetensors --row 60", "rows: expected indices from 0 to 59, got 60"),
    ("explain test.npz --bank bank.safetensors --row -1", "rows: expected indices from 0 to 59, got -1"),
    ("explain test.npz --bank bank.safetensors --row 0 --least 3", "--row, --least: expected one of the two, got both"),
    ("explain test.npz --bank bank.safetensors --row 0 --class 1", "--row, --class: expected one of the two, got both"),
    ("explain test.npz --bank bank.safetensors --least 0", "least: expected a whole number of at least 1, got 0"),
    ("explain test.npz", "Missing option '--bank'"),
    ("fit test.npz --bank bank.safetensors --out bank.safetensors", "expected a folder to write, got a file"),
    ("fit test.npz --bank bank.safetensors --out .", "expected a new or empty folder, or that of a guard"),
    ("fit test.npz --bank bank.safetensors --out no/guard", "no/guard: expected an existing folder no"),
    ("fit train.npz --bank bank.safetensors --out new", "train.npz: expected an array 'predicted' or 'logits'"),
    ("fit train.npz --predicted labels --bank bank.safetensors --out new", "all lie at distance 0 of a bank point"),
    ("fit test.npz --bank bank.safetensors --score energy --out new", "score: expected one of 'fused', 'distance'"),
    ("fit test.npz --bank bank.safetensors --risk 1.5 --out new", "risk: expected a number in (0, 1), got 1.5"),
    ("fit test.npz --bank bank.safetensors --class-names no.txt --out new", "no.txt: No such file or directory"),
    ("fit test.npz --bank bank.safetensors --class-names test.csv --out new", "names: expected 3, one for each class"),
    ("fit test.npz --bank bank.safetensors --class-names cut.npz --out new", "cut.npz: expected a text file in UTF-8"),
    ("decide test.npz --guard no", "no: expected the folder of a guard, with a file guard.json, got none there"),
    ("decide narrow.npz --guard guard", "expected 5 columns, as in the bank, got 4"),
    ("decide test.npz --predicted labels --guard guard --out x.txt", "x.txt: expected a file that ends in .csv"),
    ("decide train.npz --predicted labels --guard guard", "inputs: expected logits for the score 'fused', got none"),
    ("novelty test.npz --bank bank.safetensors", "Missing option '--known'"),
    ("novelty test.npz --bank bank.safetensors --known train.npz", "120 that all lie at distance 0 of a bank point"),
    ("novelty test.npz --bank bank.safetensors --known validation.npz --score margni", "did you mean 'margin'"),
    (
        "novelty test.npz --bank bank.safetensors --known validation.npz --false-alarms 0",
        "false_alarms: expected a number in (0, 1], got 0",
    ),
    ("ensemble test.npz test.npz", "expected a different name for each, got 'test.npz' more than once"),
    ("ensemble test.npz train.npz", "train.npz: expected an array 'logits'"),
    ("ensemble test.npz validation.npz", "validation.npz: expected the labels of test.npz"),
    ("ensemble test.npz second.npz --rule vote", "rule: expected one of"),
    ("ensemble test.npz second.npz --rule dictator", "by: expected the name of a score with the rule 'dictator'"),
    (
        "ensemble test.npz second.npz --bank bank.safetensors",
        "--bank: expected 2, one for each network, or none, got 1",
    ),
    ("ensemble test.npz second.npz --judge summed", "test.npz: expected a bank, to judge predictions"),
    ("ensemble", "(vicinal ensemble --help says more)"),
    ("explain", "(vicinal explain --help says more)"),
    ("scroe test.npz", "No such command 'scroe'"),
    ("score test.npz --margin", "No such option: --margin"),
    ("demo --out no/demo.png", "no/demo.png: expected an existing folder no"),
]


@pytest.mark.parametrize(("line", "said"), REFUSED)
def test_what_is_refused_is_said_in_one_line(line, said, run, folder):
    for name in ("test.npz", "bank.safetensors"):
        cut = Path(name).read_bytes()[:700]
        Path("cut").with_suffix(Path(name).suffix).write_bytes(cut)
    for name in ("foreign.npz", "foreign.safetensors", "test.csv"):
        Path(name).write_text("hello")
    INPUTS.save("own.safetensors")
    np.savez("narrow.npz", vectors=QUERIES[:, :4], logits=LOGITS)
    np.savez("nan.npz", vectors=np.array([[1, np.nan]]), logits=np.eye(2)[:1])
    before = sorted(folder.iterdir())
    code, out, err = run(line)
    assert (code, out) == (2, "")
    assert err.startswith("vicinal: ")
    assert err.count("\n") == 1
    assert err.endswith("\n")
    assert said in err
    assert sorted(folder.iterdir()) == before


def test_a_message_of_several_lines_becomes_one(run, monkeypatch):
    monkeypatch.setattr("vicinal.demo.run", _raising(vicinal.VicinalError("first\n  second")))
    assert run("demo") == (2, "", "vicinal: first second\n")


def _raising(error):
    def act(*arguments, **options):
        raise error

    return act


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (PermissionError(13, "Permission denied", "secret.npz"), "secret.npz: Permission denied"),
        (OSError(28, "No space left on device"), "No space left on device"),
        (OSError("something else"), "something else"),
    ],
)
def test_what_the_system_refuses_is_said_in_one_line(error, said, run, monkeypatch):
    monkeypatch.setattr("vicinal.demo.run", _raising(error))
    assert run("demo") == (2, "", f"vicinal: {said}\n")


@pytest.mark.parametrize(
    ("error", "code"), [(KeyboardInterrupt(), 130), (typer.Abort(), 130), (typer.Exit(7), 7), (typer.Exit(), 0)]
)
def test_an_end_that_was_wanted_is_quiet(error, code, run, monkeypatch):
    monkeypatch.setattr("vicinal.demo.run", _raising(error))
    assert run("demo") == (code, "", "")


def test_ctrl_c_before_anything_has_begun_is_quiet(run, monkeypatch):
    monkeypatch.setattr("vicinal.cli.running.run", _raising(KeyboardInterrupt()))
    assert run("demo") == (130, "", "")


# The same with real processes.


def test_python_m_vicinal():
    found = process("-m", "vicinal", "score", "test.npz", "--score", "margin", "--json")
    assert (found.returncode, found.stderr) == (0, "")
    assert json.loads(found.stdout)["predictions"] == M


def test_a_process_that_refuses_ends_with_2():
    found = process("-m", "vicinal", "score", "none.parquet")
    assert (found.returncode, found.stdout) == (2, "")
    assert found.stderr == "vicinal: none.parquet: expected a file, got nothing there\n"


_PATCHED = """
import os, signal, sys, vicinal.demo
from vicinal.cli import main
def run(*arguments, **options):
    {act}
vicinal.demo.run = run
raise SystemExit(main(["demo"]))
"""


def test_a_defect_shows_its_traceback_and_ends_with_1():
    found = process("-c", _PATCHED.format(act="raise ZeroDivisionError('a defect')"))
    assert found.returncode == 1
    assert "Traceback" in found.stderr
    assert "ZeroDivisionError: a defect" in found.stderr


@pytest.mark.skipif(os.name != "posix", reason="signals are sent otherwise on Windows")
def test_ctrl_c_ends_with_130_without_a_traceback():
    heard = "signal.signal(signal.SIGINT, signal.default_int_handler)"  # a shell's background jobs do not hear Ctrl-C
    act = f"{heard}; os.kill(os.getpid(), signal.SIGINT); signal.sigtimedwait([], 5)"
    found = process("-c", _PATCHED.format(act=act))
    assert (found.returncode, found.stdout, found.stderr) == (130, "", "")


@pytest.mark.skipif(os.name != "posix", reason="a shell and its pipes")
@pytest.mark.parametrize("words", ["--help", "score test.npz --score margin --json", "score test.npz --score margin"])
def test_output_that_nobody_reads_ends_quietly(words):
    line = f"{{ {sys.executable} -m vicinal {words}; echo $? >&2; }} | true"
    found = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=120)
    assert found.stderr in ("141\n", "0\n")  # 0 where all was written before the reader left


@pytest.mark.skipif(os.name != "posix", reason="a shell that closes files")
def test_closed_output_and_closed_errors_are_no_defect():
    run = f"{sys.executable} -m vicinal"
    assert _shell(f"{run} evaluate test.npz --samples 20 >&-") == (0, "", "")
    assert _shell(f"{run} score none.npz 2>&-") == (2, "", "")
    assert _shell(f"{run} score none.npz --json >&- 2>&-") == (2, "", "")


def _shell(line):
    found = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=120)
    return found.returncode, found.stdout, found.stderr


@pytest.mark.parametrize(
    "words", ["--samples 1000000000000", "--samples 99999999999999999999", "--bins 100000000000000"]
)
def test_more_than_memory_holds_is_refused(words, run):
    code, out, err = run(f"evaluate test.npz {words}")
    assert (code, out) == (2, "")
    assert err.startswith(f"vicinal: {words.split()[0][2:]}: expected a whole number from 1 to")


@pytest.mark.skipif(os.name != "posix", reason="needs a limit on the size of files")
@pytest.mark.parametrize(
    "words",
    [["bank", "train.npz", "--out", "old.safetensors"], ["score", "test.npz", "--score", "margin", "--out", "old.csv"]],
)
def test_a_disk_that_fills_up_leaves_the_old_file_whole(words, folder):
    import resource

    old = Path(words[-1])
    old.write_text("what was there")
    before = sorted(folder.iterdir())
    found = process("-m", "vicinal", *words, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024)))
    assert (found.returncode, found.stdout) == (2, "")
    assert found.stderr.startswith(f"vicinal: {old}: expected to write it, got: File too large")
    assert found.stderr.count("\n") == 1
    assert old.read_text() == "what was there"
    assert sorted(folder.iterdir()) == before


def test_a_reader_that_goes_away_is_no_defect():
    words = [sys.executable, "-m", "vicinal", "score", "test.npz", "--score", "margin", "--json"]
    reading, writing = os.pipe()
    os.close(reading)
    try:
        found = subprocess.run(words, stdout=writing, stderr=subprocess.PIPE, text=True, timeout=120)
    finally:
        os.close(writing)
    assert found.returncode != 0
    assert "Traceback" not in found.stderr


# The documentation.


def sessions():
    """Each command in the docs, and what it is said to print."""
    for block in re.findall(r"```console\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, printed = part.partition("\n")
            yield command, printed


def _in_words(text):
    """Text without its numbers, as the last digits may differ between machines, and without its alignment."""
    return re.sub(r"\s+", " ", re.sub(r"-?[\d,]*\.?\d+", "#", text)).strip()


def test_the_session_in_the_docs_prints_what_it_says(run):
    (setup,) = re.findall(r"```python\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    exec(setup, {})
    commands = dict(sessions())
    assert len(commands) >= 12
    for command, printed in commands.items():
        code, out, err = run(command.removeprefix("vicinal "))
        assert code == (2 if printed.startswith("vicinal: ") else 0)
        start, elided, _ = printed.partition("\n...\n")
        found, expected = _in_words(out + err), _in_words(start)
        assert found.startswith(expected) if elided else found == expected


def test_the_docs_name_every_command_and_every_setting(done):
    text = DOCS.read_text(encoding="utf-8")
    for name in COMMANDS:
        assert f"`vicinal {name}`" in text
    for option in re.findall(r"--[a-z-]+", done("score --help")):
        assert option in text
