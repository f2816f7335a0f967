import json
from collections import Counter

import numpy as np
import pytest

from oracle import nearest
from vicinal import Bank, Embeddings, distance, margin
from vicinal.errors import InputError
from vicinal.explain import ask, choose, columns, explain
from vicinal.scoring import Settings

_RNG = np.random.default_rng(8)
POINTS = np.round(_RNG.normal(size=(40, 3)), 1)  # rounded, so that some distances are tied
LABELS = _RNG.integers(0, 3, 40)
QUERIES = np.round(_RNG.normal(size=(12, 3)), 1)
PREDICTED = _RNG.integers(0, 3, 12)
TRUTH = _RNG.integers(0, 3, 12)
BANK = Bank(POINTS, LABELS)
TRUST = distance(BANK, QUERIES, PREDICTED, k=9)


def test_reasons_are_the_neighbours_that_a_loop_finds():
    reasons = explain(TRUST, labels=TRUTH, shown=4)
    assert [reason.row for reason in reasons] == list(range(12))
    for reason, query, predicted, truth in zip(reasons, QUERIES, PREDICTED, TRUTH, strict=True):
        ranked = nearest(POINTS, query, len(POINTS))
        assert (reason.predicted, reason.label, reason.k) == (predicted, truth, 9)
        assert reason.counts == Counter(LABELS[j] for _, j in ranked[:9])
        assert list(reason.counts.values()) == sorted(reason.counts.values(), reverse=True)
        assert [(one.row, one.label) for one in reason.neighbors] == [(j, LABELS[j]) for _, j in ranked[:4]]
        assert [one.distance for one in reason.neighbors] == pytest.approx([d for d, _ in ranked[:4]])
        for witness, wanted in ((reason.same, True), (reason.other, False)):
            d, j = next((d, j) for d, j in ranked if (LABELS[j] == predicted) == wanted)
            assert (witness.row, witness.label, witness.distance) == (j, LABELS[j], pytest.approx(d))
        assert reason.log_odds == TRUST.log_odds[reason.row]
        assert (reason.rival, reason.rival_log_odds) == (
            TRUST.rival.labels[reason.row],
            TRUST.rival.log_odds[reason.row],
        )


def test_rows_come_in_the_order_asked_for():
    assert [reason.row for reason in explain(TRUST, [7, 0, 7])] == [7, 0, 7]
    for wrong in (12, -1):
        with pytest.raises(InputError, match=f"row: expected one from 0 to 11, got {wrong}"):
            explain(TRUST, [3, wrong])


def test_the_least_trusted_are_chosen_by_log_odds_ties_by_row():
    order = sorted(range(12), key=lambda row: (TRUST.log_odds[row], row))
    assert choose(TRUST, 5).tolist() == order[:5]
    assert choose(TRUST, 99).tolist() == order
    assert choose(TRUST, 2, of_class=0).tolist() == [row for row in order if PREDICTED[row] == 0][:2]
    tied = margin(np.zeros((4, 3)))
    assert choose(tied, 3).tolist() == [0, 1, 2]


def test_a_class_that_is_not_predicted_is_refused():
    with pytest.raises(InputError, match=r"class: expected one that is predicted \(0, 1, 2\), got 7"):
        choose(TRUST, 1, of_class=7)
    with pytest.raises(InputError, match="expected a score that judges predictions, got margin"):
        choose(margin(np.eye(3)), 1, of_class=0)
    with pytest.raises(InputError, match="least: expected a whole number of at least 1, got 0"):
        choose(TRUST, 0)


def test_only_the_distance_score_has_reasons():
    with pytest.raises(InputError, match="expected one by the score 'distance', which has neighbours, got 'margin'"):
        explain(margin(np.eye(3)))


@pytest.mark.parametrize(
    ("points", "labels", "predicted", "lines"),
    [
        (
            [[0.0], [1.0], [2.0], [9.0]],
            [4, 4, 4, 6],
            4,
            [
                "row 0: predicted 4 (right); the training points around it agree (confidence 1.000, log-odds 8.69)",
                "  of its 2 nearest training points 2 are of class 4",
                "  the nearest: row 0 of class 4 at 0.5; row 1 of class 4 at 0.5",
                "  the nearest of class 4: row 0 of class 4 at 0.5",
                "  the nearest of any other class: row 3 of class 6 at 8.5",
                "  its strongest rival is class 6, at log-odds -8.69",
            ],
        ),
        (
            [[0.0], [1.0]],
            [7, 7],
            4,
            [
                "row 0: predicted 4 (right); the training points around it rather say 7",
                "  of its 2 nearest training points 0 are of class 4; the others: 2 of class 7",
                "  the nearest: row 0 of class 7 at 0.5; row 1 of class 7 at 0.5",
                "  the nearest of class 4: the bank has none",
                "  the nearest of any other class: row 0 of class 7 at 0.5",
                "  its strongest rival is class 7, at log-odds",
            ],
        ),
        (
            [[0.0], [1.0]],
            [4, 4],
            4,
            [
                "row 0: predicted 4 (right); the training points around it agree (confidence 1.000, log-odds",
                "  of its 2 nearest training points 2 are of class 4",
                "  the nearest: row 0 of class 4 at 0.5; row 1 of class 4 at 0.5",
                "  the nearest of class 4: row 0 of class 4 at 0.5",
                "  the nearest of any other class: the bank has none",
            ],
        ),
    ],
)
def test_a_reason_in_words(points, labels, predicted, lines):
    trust = distance(Bank(points, labels), [[0.5]], [predicted], k=2)
    said = str(explain(trust, labels=[4])[0]).split("\n")
    assert len(said) == len(lines)
    for line, start in zip(said, lines, strict=True):
        assert line.startswith(start)


def test_many_classes_that_share_the_neighbours_are_divided_and_cut_short():
    labels = [0, 0, 0, 1, 1, 2, 3, 4, 5, 6]
    trust = distance(Bank(np.ones((10, 2)), labels), [[0.0, 0.0]], [0], k=10)
    first, second, *_ = str(explain(trust, labels=[9])[0]).split("\n")
    assert first.startswith("row 0: predicted 0 (wrong: it is 9); the training points around it are divided")
    assert second.endswith("the others: 2 of class 1, 1 of class 2, 1 of class 3, 1 of class 4, 2 classes more")


def test_a_reason_is_json():
    found = json.loads(json.dumps(explain(TRUST, [3], shown=2)[0].to_json(), allow_nan=False))
    assert found["row"] == 3
    assert found["label"] is None
    assert found["neighbors"][0] == {
        "row": int(TRUST.neighbors.indices[3, 0]),
        "label": int(TRUST.neighbors.labels[3, 0]),
        "distance": TRUST.neighbors.distances[3, 0],
    }
    assert sum(found["counts"].values()) == 9


def test_the_table_has_a_row_for_each_neighbour():
    table = columns(explain(TRUST, [5, 2], labels=TRUTH, shown=3))
    assert table["row"] == [5, 5, 5, 2, 2, 2]
    assert table["rank"] == [0, 1, 2, 0, 1, 2]
    assert table["label"] == [TRUTH[5]] * 3 + [TRUTH[2]] * 3
    assert table["neighbor_row"] == [*TRUST.neighbors.indices[5, :3], *TRUST.neighbors.indices[2, :3]]
    assert table["neighbor_distance"][0] == TRUST.neighbors.distances[5, 0]
    assert columns(())["rank"] == []


def test_asking_scores_only_the_rows_wanted_and_says_the_same():
    inputs = Embeddings(QUERIES, predicted=PREDICTED, labels=TRUTH)
    settings = Settings(k=9)
    assert ask(inputs, BANK, settings, rows=[4, 1]) == explain(TRUST, [4, 1], labels=TRUTH)
    assert ask(inputs, BANK, settings, least=3) == explain(TRUST, choose(TRUST, 3), labels=TRUTH)
    assert [reason.k for reason in ask(inputs, BANK, Settings(k="all"), rows=[0])] == [10]
    with pytest.raises(InputError, match="expected indices from 0 to 11"):
        ask(inputs, BANK, settings, rows=[12])


def test_asking_about_the_banks_own_points_leaves_each_out():
    own = Embeddings(POINTS, predicted=LABELS)
    (reason,) = ask(own, BANK, Settings(k=5, exclude_self=True), rows=[6])
    ranked = nearest(POINTS, POINTS[6], 5, skip=6)
    assert [one.row for one in reason.neighbors] == [j for _, j in ranked]
