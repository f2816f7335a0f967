"""An evaluation says what the metrics say, prints it, and comes back from its file unchanged."""

from __future__ import annotations

import io
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import vicinal.evaluation as module
from vicinal import metrics
from vicinal.errors import FileError, InputError, ShapeError
from vicinal.evaluation import Evaluation, evaluate
from vicinal.metrics import METRICS, Points
from vicinal.values import Embeddings, Trust

N = 300


def logits_and_labels() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Logits of three classes that are right in about two cases of three, and surer where they are."""
    generator = np.random.default_rng(0)
    labels = generator.integers(3, size=N)
    logits = generator.normal(0, 1, (N, 3)) + 1.5 * (labels[:, None] == np.arange(3))
    return logits, labels


@pytest.fixture(scope="module")
def embeddings() -> Embeddings:
    logits, labels = logits_and_labels()
    return Embeddings(np.ones((N, 2)), logits=logits, labels=labels, facts={"network": "drawn"})


def gap(embeddings: Embeddings) -> Trust:
    """How far the first logit is ahead of the second, and as a probability."""
    assert embeddings.logits is not None
    ordered = np.sort(embeddings.logits, axis=1)
    ahead = ordered[:, -1] - ordered[:, -2]
    return Trust("gap", 1 / (1 + np.exp(-ahead)), ahead, probability=True, notes=("made for a test",))


def noise(seed: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).normal(size=N)


@pytest.fixture(scope="module")
def found(embeddings: Embeddings) -> Evaluation:
    return evaluate(embeddings, {"gap": gap, "noise": noise(1), "largest": embeddings.logits.max(axis=1)}, samples=200)


def test_it_says_what_the_metrics_say(embeddings: Embeddings, found: Evaluation) -> None:
    correct, trust = embeddings.correct, gap(embeddings)
    for name, metric in METRICS.items():
        given = trust.confidence if metric.scale == "probability" else trust.log_odds
        assert found.interval("gap", name) == metrics.interval(name, given, correct, samples=200), name
    assert found.interval("noise").value == metrics.auroc(noise(1), correct)
    assert found.n == N
    assert found.errors == (~correct).sum()
    assert found.accuracy.value == correct.mean()


def test_it_compares_as_the_metrics_do(embeddings: Embeddings, found: Evaluation) -> None:
    first, second = gap(embeddings).log_odds, noise(1)
    for name in ("auroc", "aurc", "fpr_at_95_tpr"):
        expected = metrics.compare(name, first, second, embeddings.correct, samples=200)
        assert found.compare("gap", "noise", name) == expected
        assert found.compare("noise", "gap", name) == -expected


def test_settings_reach_the_metrics(embeddings: Embeddings) -> None:
    settings: dict[str, Any] = {"samples": 50, "seed": 4, "level": 0.8, "coverage": 0.5, "risk": 0.3, "bins": 4}
    found = evaluate(embeddings, {"gap": gap, "noise": noise(1)}, **settings)
    trust, correct = gap(embeddings), embeddings.correct
    for name, metric in METRICS.items():
        given = trust.confidence if metric.scale == "probability" else trust.log_odds
        assert found.interval("gap", name) == metrics.interval(name, given, correct, **settings), name
    expected = metrics.compare("risk_at_coverage", trust.log_odds, noise(1), correct, **settings)
    assert found.compare("gap", "noise", "risk_at_coverage") == expected
    assert found.points == Points(0.5, 0.3, 4)
    assert "risk at 50%" in str(found)
    assert "coverage at 30%" in str(found)
    assert "80% intervals from 50 stratified bootstrap samples, seed 4" in str(found)


def test_the_interval_of_the_accuracy_is_that_of_clopper_and_pearson() -> None:
    found = evaluate(None, {"a": np.arange(20.0)}, correct=np.arange(20) < 15, samples=5)
    assert (found.accuracy.low, found.accuracy.high) == pytest.approx((0.50895, 0.91343), abs=1e-5)  # a published table


def test_it_ranks_by_the_log_odds() -> None:
    """A confidence that saturates ties all; the log-odds tell right from wrong."""
    log_odds, correct = np.array([50.0, 48.0, 42.0, 40.0]), [1, 1, 0, 0]
    trust = Trust("sure", np.ones(4), log_odds, probability=True)
    found = evaluate(None, {"sure": trust}, correct=correct, samples=5)
    assert found.interval("sure", "auroc").value == 1.0
    assert found.interval("sure", "ece").value == 0.5
    assert found.interval("sure", "brier").value == 0.5


def test_only_a_probability_is_calibrated(embeddings: Embeddings, found: Evaluation) -> None:
    for metric in ("ece", "brier"):
        assert math.isnan(found.interval("noise", metric).value)
        assert math.isnan(found.compare("gap", "noise", metric).p)
    plain = gap(embeddings)
    silent = Trust(plain.name, plain.confidence, plain.log_odds)
    assert math.isnan(evaluate(embeddings, {"gap": silent}, samples=5).interval("gap", "ece").value)


def test_a_probability_outside_its_bounds_is_refused() -> None:
    trust = Trust("odd", np.array([0.5, 1.5]), np.zeros(2), probability=True)
    with pytest.raises(InputError, match=r"odd\.confidence: expected numbers from 0 to 1, got 1.5 in row 1"):
        evaluate(None, {"odd": trust}, correct=[0, 1])


@pytest.mark.parametrize(
    ("scores", "error", "message"),
    [
        ({}, InputError, "scores: expected names and scores"),
        ([1.0, 2.0], InputError, "scores: expected names and scores"),
        ({"a": [1.0]}, ShapeError, r"scores\['a'\]: expected 2, one for each prediction, got 1"),
        ({"a": [1.0, np.inf]}, InputError, r"scores\['a'\]: expected finite numbers, got inf in row 1"),
        ({"a": Trust("a", np.zeros(3), np.zeros(3))}, ShapeError, r"scores\['a'\]: expected 2 values.* got 3"),
        ({"a": Trust("a", np.zeros(2), np.array([0, -np.inf]))}, InputError, r"scores\['a'\].log_odds: .* got -inf"),
        ({"a": gap}, InputError, r"scores\['a'\]: expected a Trust or numbers, as there are no embeddings"),
    ],
)
def test_scores_that_cannot_be_used_are_refused(scores: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        evaluate(None, scores, correct=[True, False])


def test_someone_must_say_what_is_right(embeddings: Embeddings) -> None:
    with pytest.raises(InputError, match="correct: expected which predictions are right"):
        evaluate(None, {"a": [1.0]})
    with pytest.raises(InputError, match="embeddings: expected labels"):
        evaluate(Embeddings(np.ones((2, 2)), predicted=[0, 1]), {"a": [1.0, 2.0]})
    with pytest.raises(ShapeError, match=f"correct: expected {N}, one for each prediction, got 1"):
        evaluate(embeddings, {"gap": gap}, correct=[True])


@pytest.mark.parametrize(
    "bad", [{"samples": 0}, {"seed": 0.5}, {"level": 0}, {"coverage": 0}, {"risk": 2}, {"bins": 0}, {"kinds": "ab"}]
)
def test_bad_settings_are_refused(bad: dict[str, Any]) -> None:
    if "kinds" in bad:
        bad = {"kinds": ("known",)}
    with pytest.raises(InputError, match=f"{next(iter(bad))}: expected"):
        evaluate(None, {"a": [1.0, 2.0]}, correct=[True, False], **bad)


def test_a_judgement_of_other_predictions_is_refused(embeddings: Embeddings) -> None:
    assert embeddings.predicted is not None
    others = embeddings.predicted.copy()
    others[[7, 9]] = (others[[7, 9]] + 1) % 3
    trust = Trust("other", noise(0), noise(0), others)
    with pytest.raises(InputError, match=r"scores\['other'\]: .* got one of other predictions \(2 rows, the first 7\)"):
        evaluate(embeddings, {"other": trust})
    same = Trust("same", noise(0), noise(0), embeddings.predicted)
    for judged, correct in ((same, None), (trust, others == embeddings.labels)):
        found = evaluate(embeddings, {"it": judged}, correct=correct, samples=5)
        expected = embeddings.correct if correct is None else correct
        assert found.interval("it").value == metrics.auroc(noise(0), expected)


def test_names_that_are_not_there_are_refused(found: Evaluation) -> None:
    with pytest.raises(
        InputError, match="score: expected one of 'gap', 'noise', 'largest', got 'noises'; did you mean"
    ):
        found.interval("noises")
    with pytest.raises(InputError, match=r"metric: expected one of .* did you mean 'aurc'"):
        found.compare("gap", "noise", "aurcs")
    with pytest.raises(InputError, match="metric: expected one of"):
        found.best("AUROC!")
    with pytest.raises(InputError, match="compare: expected two scores, got 'gap' twice"):
        found.compare("gap", "gap")


def test_the_best_is_better_than_every_other() -> None:
    correct = np.arange(200) < 120
    good, bad = correct + noise(1)[:200], noise(2)[:200]
    scores = {"bad": bad, "good": good}
    found = evaluate(None, scores, correct=correct, samples=200)
    assert [found.best(metric) for metric in ("auroc", "aurc", "augrc", "aupr_error")] == ["good"] * 4
    assert found.best("ece") is None
    tied = evaluate(None, {**scores, "again": np.exp(good)}, correct=correct, samples=200)
    assert tied.best("auroc") is None
    assert evaluate(None, {"good": good}, correct=correct, samples=5).best("auroc") is None
    # A twin drawn alike differs, but not by enough to say so.
    twin = correct + noise(5)[:200]
    close = evaluate(None, {**scores, "twin": twin}, correct=correct, samples=200)
    assert close.compare("good", "twin").p >= 0.05
    assert close.best("auroc") is None
    # At a level of 1 % it is enough.
    loose = evaluate(None, {**scores, "twin": twin}, correct=correct, samples=200, level=0.01)
    assert loose.best("auroc") in ("good", "twin")


PRINTED = """\
8 predictions, 4 of them wrong: accuracy 0.500 [0.157, 0.843]
95% intervals from 200 stratified bootstrap samples, seed 0

      AUROC                  AUPR success           AUPR error             FPR at 95% TPR
      higher is better       higher is better       higher is better       lower is better
good  1.000* [1.000, 1.000]  1.000* [1.000, 1.000]  1.000* [1.000, 1.000]  0.000* [0.000, 0.000]
bad   0.000  [0.000, 0.000]  0.500  [0.500, 0.500]  0.500  [0.500, 0.500]  1.000  [1.000, 1.000]

      AURC                      E-AURC                       AUGRC
      lower is better           lower is better              lower is better
good  0.1250* [0.1250, 0.1250]  -0.0284* [-0.0284, -0.0284]  0.1250* [0.1250, 0.1250]
bad   0.8750  [0.8750, 0.8750]  0.7216  [0.7216, 0.7216]     0.3750  [0.3750, 0.3750]

      risk at 80%            coverage at 5%
      lower is better        higher is better
good  0.500  [0.500, 0.500]  0.500* [0.500, 0.500]
bad   0.500  [0.500, 0.500]  0.000  [0.000, 0.000]

* better than every other score (paired bootstrap, p < 0.05)
note: only 4 of the predictions are right: do not rely on the intervals
note: only 4 of the predictions are wrong: do not rely on the intervals"""


@pytest.mark.parametrize("wrong", [{1: [1, 2]}, {None: [1, 2]}])
def test_names_of_scores_are_words(wrong: Any) -> None:
    with pytest.raises(InputError, match="scores: expected names of scores, got"):
        evaluate(None, wrong, correct=[1, 0])


def test_what_are_no_embeddings_is_refused() -> None:
    with pytest.raises(InputError, match="embeddings: expected Embeddings, or None with correct, got ndarray"):
        evaluate(np.zeros((2, 2)), {"a": [1, 2]})  # type: ignore[arg-type]


@pytest.mark.parametrize("kinds", [[], "x", None])
def test_a_file_without_two_kinds_is_refused(tmp_path: Path, kinds: Any) -> None:
    path = tmp_path / "e.json"
    content = evaluate(None, {"a": [3, 2, 1, 0]}, correct=[1, 0, 1, 0], samples=5).to_json()
    path.write_text(json.dumps({**content, "kinds": kinds}))
    with pytest.raises(FileError, match=r"expected a whole vicinal\.evaluation file"):
        Evaluation.load(path)


def test_it_prints_a_table_that_lines_up() -> None:
    """Scores of two values, so that every bootstrap sample gives the same."""
    right = np.arange(8) < 4
    text = str(evaluate(None, {"good": right, "bad": ~right}, correct=right, samples=200))
    assert text == PRINTED


def test_what_a_score_does_not_have_is_a_dash(found: Evaluation) -> None:
    last = str(found).split("\n\n")[3].split("\n")
    assert last[0].split()[-2:] == ["ECE", "Brier"]
    assert last[2].startswith("gap")
    assert last[3].split()[-2:] == ["-", "-"]
    assert "note: gap: made for a test" in str(found)


def test_the_rich_table_says_the_same(found: Evaluation) -> None:
    console = Console(file=io.StringIO(), width=140)
    console.print(found.table())
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    words = [word for word in shown.replace("│", " ").replace("┃", " ").split() if not set(word) & set("━┏┡└─┓┘")]
    assert words == str(found).split()


@pytest.mark.parametrize(("right", "undefined"), [(True, "AUPR error"), (False, "AUPR success")])
def test_it_prints_where_all_are_right_or_all_are_wrong(right: bool, undefined: str) -> None:
    trust = Trust("t", np.full(9, 0.75), np.arange(9.0), probability=True)
    found = evaluate(None, {"t": trust, "u": np.arange(9)}, correct=np.full(9, right), samples=20)
    assert math.isnan(found.interval("t", "auroc").value)
    assert found.interval("t", "aurc").value == (0.0 if right else 1.0)
    assert found.interval("t", "brier").value == (0.0625 if right else 0.5625)
    missing = "wrong" if right else "right"
    assert f"note: none of the predictions is {missing}: AUROC, {undefined}, FPR at 95% TPR are undefined" in str(found)
    assert f"accuracy {float(right):.3f}" in str(found)
    assert "nan" not in str(found)


def test_few_errors_are_a_note() -> None:
    for wrongs, note in (
        (1, "only 1 of the predictions is wrong"),
        (9, "only 9 of the predictions are wrong"),
        (10, ""),
    ):
        notes = evaluate(None, {"a": noise(0)}, correct=np.arange(N) >= wrongs, samples=5).notes
        assert [said.split(":")[0] for said in notes] == ([note] if note else [])


def test_known_and_novel() -> None:
    known = np.arange(N) < 200
    found = evaluate(None, {"far": noise(0) + known}, correct=known, samples=20, kinds=("known", "novel"))
    assert str(found).startswith("300 predictions, 100 of them novel: share of known 0.667 [")
    assert repr(found) == "Evaluation(far; 300 predictions, 100 novel)"
    assert found.interval("far").value == metrics.auroc(noise(0) + known, known)


def test_rows_are_for_a_data_frame(found: Evaluation) -> None:
    rows = found.rows()
    assert len(rows) == 3 * len(METRICS)
    assert [row["score"] for row in rows[:: len(METRICS)]] == list(found.scores) == ["gap", "noise", "largest"]
    first = found.interval("gap", "auroc")
    assert rows[0] == {"score": "gap", "metric": "auroc", "value": first.value, "low": first.low, "high": first.high}


def test_a_file_brings_back_all_of_it(found: Evaluation, tmp_path: Path) -> None:
    path = tmp_path / "found.json"
    found.save(path)
    again = Evaluation.load(path)
    for name in ("n", "errors", "accuracy", "points", "samples", "seed", "level", "kinds", "notes", "facts"):
        assert getattr(again, name) == getattr(found, name), name
    assert found.facts == {"network": "drawn"}
    assert repr(again.rows()) == repr(found.rows())  # NaN is not equal to itself
    assert repr(again.comparisons) == repr(found.comparisons)
    assert str(again) == str(found)
    assert again.compare("noise", "gap") == found.compare("noise", "gap")


def test_the_file_is_json_of_any_reader(found: Evaluation, tmp_path: Path) -> None:
    found.save(tmp_path / "found.json")

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    content = json.loads((tmp_path / "found.json").read_text(), parse_constant=refuse)
    assert (content["format"], content["version"]) == ("vicinal.evaluation", 1)
    undefined = {"score": "noise", "metric": "ece", "value": None, "low": None, "high": None}
    assert undefined in content["intervals"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "vicinal.bank"}, "expected a vicinal.evaluation file, got 'vicinal.bank'"),
        ({"version": 2}, "expected vicinal.evaluation of version 1 or older, got 2; update vicinal"),
        ({"version": None}, "version 1 or older, got None"),
        ({"intervals": None}, "expected a whole vicinal.evaluation file"),
        ({"intervals": [{"score": "a"}]}, "expected a whole vicinal.evaluation file, but KeyError"),
        ({"points": {"coverage": 2.0}}, "expected a whole vicinal.evaluation file, but InputError"),
        ({"n": "many"}, "expected a whole vicinal.evaluation file"),
    ],
)
def test_a_file_of_another_kind_is_refused(
    found: Evaluation, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    path = tmp_path / "found.json"
    found.save(path)
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(FileError, match=message):
        Evaluation.load(path)


@pytest.mark.parametrize("content", ["[1, 2]", '"words"', '{"format": ', ""])
def test_a_file_that_is_no_evaluation_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "found.json"
    path.write_text(content)
    with pytest.raises(FileError, match="expected"):
        Evaluation.load(path)


def test_nothing_is_computed_again(found: Evaluation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("an evaluation is data")

    before = str(found)
    for name in ("bootstrap", "binomtest", "Judge"):
        monkeypatch.setattr(module, name, refuse, raising=False)
    monkeypatch.setattr("vicinal.metrics.bootstrap._weights", refuse)
    found.save(tmp_path / "found.json")
    assert str(Evaluation.load(tmp_path / "found.json")) == before == str(found)
    assert found.compare("gap", "noise").p <= 1
    assert found.table().renderables


def test_importing_it_is_light() -> None:
    heavy = "('torch', 'sklearn', 'matplotlib', 'rich', 'scipy', 'numba')"
    program = f"import vicinal.evaluation, sys; sys.exit([m for m in {heavy} if m in sys.modules] or None)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
