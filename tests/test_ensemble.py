"""Ensembles: each rule against a loop over inputs, ties, gaps, and the evidence of several embeddings."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit, softmax

from scenarios import TwoGaussians
from vicinal import metrics, score
from vicinal.bank import Bank
from vicinal.ensemble import RULES, Ensemble, Member, accuracy_by_size, combine, judge, pair
from vicinal.errors import InputError, ShapeError
from vicinal.values import Embeddings, Trust

BY = {"average": None, "majority": None, "weighted": "sure", "confidence_vote": "sure", "dictator": "sure"}


def slow(members, rule, rows, classes):
    """The rules, one input at a time, as the docstring of ``combine`` says them; and where there was a tie."""
    predicted, ties = [], []
    for row in rows:
        said = []  # (softmax by class, weight, log-odds) of the members that have the row
        for member in members:
            numbers = list(range(len(member))) if member.rows is None else list(member.rows)
            if row in numbers:
                at = numbers.index(row)
                outputs = dict(zip(member.classes.tolist(), member.probabilities[at].tolist(), strict=True))
                trust = member.scores["sure"]
                said.append((outputs, trust.confidence[at], trust.log_odds[at]))
        mean = {c: sum(outputs[c] for outputs, _, _ in said) / len(said) for c in classes}
        surest = max(range(len(said)), key=lambda i: (said[i][2], -i))
        votes_of = [max(outputs, key=lambda c, o=outputs: (o[c], -c)) for outputs, _, _ in said]
        if rule == "average":
            points = mean
        elif rule == "weighted":
            weights = [w for _, w, _ in said] if any(w > 0 for _, w, _ in said) else [1.0] * len(said)
            points = {c: sum(w * o[c] for w, (o, _, _) in zip(weights, said, strict=True)) for c in classes}
        elif rule == "dictator":
            points = said[surest][0]
        else:
            votes = Counter(votes_of)
            if rule == "confidence_vote":
                votes[votes_of[surest]] += len(said) / 2 - 1
            points = {c: votes.get(c, 0) for c in classes}
        best = max(points.values())
        leading = [c for c, p in points.items() if p >= best - 1e-12]
        ties.append(len(leading) > 1)
        if rule in ("majority", "confidence_vote"):
            if rule == "confidence_vote" and votes_of[surest] in leading:
                leading = [votes_of[surest]]
            largest = max(mean[c] for c in leading)
            leading = [c for c in leading if mean[c] >= largest - 1e-12]
        predicted.append(min(leading))
    return np.array(predicted), np.array(ties)


@st.composite
def ensembles(draw):
    count, inputs, columns = draw(st.integers(1, 5)), draw(st.integers(1, 8)), draw(st.integers(2, 5))
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    classes = generator.choice(np.arange(-3, 12), columns, replace=False)
    gaps = draw(st.booleans())
    members = []
    for index in range(count):
        # multiples of 1/8, so that ties are frequent and sums exact
        cuts = np.sort(generator.integers(0, 9, (inputs, columns - 1)), axis=1)
        probabilities = np.diff(cuts, axis=1, prepend=0, append=8) / 8
        rows = np.arange(100, 100 + inputs)
        if gaps and index and inputs > 1:
            keep = generator.permutation(inputs)[: generator.integers(1, inputs + 1)]
            rows, probabilities = rows[keep], probabilities[keep]
        order = generator.permutation(columns)
        member = Member(f"m{index}", probabilities[:, order], classes[order], rows)
        confidence = generator.integers(0, 5, len(rows)) / 4
        log_odds = generator.integers(-2, 3, len(rows)).astype(float)
        members.append(member.scored("sure", Trust("sure", confidence, log_odds, member.predicted)))
    return members


@pytest.mark.parametrize("rule", RULES)
@settings(deadline=None, max_examples=150)
@given(members=ensembles())
def test_each_rule_against_a_loop_over_inputs(rule, members):
    combined = combine(members, rule, by=BY[rule])
    expected, ties = slow(members, rule, combined.rows, sorted(members[0].classes.tolist()))
    assert combined.predicted.tolist() == expected.tolist()
    assert combined.tied.tolist() == ties.tolist()
    np.testing.assert_allclose(combined.support.sum(axis=1), 1)
    assert (combined.support.max(axis=1) == combined.support[np.arange(len(combined)), _columns(combined)])[
        ~combined.tied
    ].all()


def _columns(combined):
    return np.searchsorted(combined.classes, combined.predicted)


@settings(deadline=None, max_examples=50)
@given(members=ensembles())
def test_the_order_of_columns_and_rows_does_not_matter(members):
    generator = np.random.default_rng(0)
    shuffled = []
    for member in members:
        columns, rows = generator.permutation(len(member.classes)), generator.permutation(len(member))
        sure = member.scores["sure"]
        turned = Member(member.name, member.probabilities[rows][:, columns], member.classes[columns], member.rows[rows])
        shuffled.append(turned.scored("sure", Trust("sure", sure.confidence[rows], sure.log_odds[rows])))
    for rule in RULES:
        first, second = combine(members, rule, by=BY[rule]), combine(shuffled, rule, by=BY[rule])
        order = np.argsort(second.rows)
        assert first.rows.tolist() == second.rows[order].tolist()
        assert second.predicted[order].tolist() == first.predicted.tolist()
        assert first.tied.tolist() == second.tied[order].tolist()


def test_members_added_one_by_one_decide_as_all_at_once():
    members = _networks(4, 300, 6)
    grown = Ensemble((members[0],))
    for member in members[1:]:
        grown = grown.add(member)
    assert len(grown) == 4
    for rule in RULES:
        by = None if BY[rule] is None else "margin"
        assert (combine(grown, rule, by=by).predicted == combine(members, rule, by=by).predicted).all()


def _networks(count, inputs, columns, seed=0):
    generator = np.random.default_rng(seed)
    common = 2 * generator.normal(size=(inputs, columns))
    return [
        Member.of(
            f"n{i}",
            Embeddings(generator.normal(size=(inputs, i + 2)), common + generator.normal(size=(inputs, columns))),
        )
        for i in range(count)
    ]


def test_a_member_comes_with_its_margin_and_entropy():
    logits = np.random.default_rng(0).normal(size=(50, 4)) * 3
    member = Member.of("m", Embeddings(np.ones((50, 2)), logits, classes=[5, 2, 9, 0]))
    np.testing.assert_allclose(member.probabilities, softmax(logits, axis=1))
    assert (member.predicted == np.array([5, 2, 9, 0])[logits.argmax(axis=1)]).all()
    assert set(member.scores) == {"margin", "entropy"}
    assert repr(member) == "Member(m, 50 x 4; margin, entropy)"
    alone = Member.of("m", logits, classes=[5, 2, 9, 0], rows=np.arange(50), kind="Reg")
    assert (alone.vectors, alone.kind, alone.rows.tolist()) == (None, "Reg", list(range(50)))
    np.testing.assert_array_equal(alone.probabilities, member.probabilities)
    np.testing.assert_array_equal(alone.predicted, member.predicted)


def test_entropy_weighs_by_the_bits_that_are_left():
    sharp, flat = np.array([[0.98, 0.01, 0.01]]), np.array([[0.0, 0.55, 0.45]])
    members = [
        Member(name, p, scores={"entropy": score.entropy(probabilities=p)}) for name, p in (("a", sharp), ("b", flat))
    ]
    weights = [1 + (p * np.log(np.maximum(p, 1e-300))).sum() / np.log(3) for p in (sharp, flat)]
    combined = combine(members, "weighted", by="entropy")
    np.testing.assert_allclose(combined.support, (weights[0] * sharp + weights[1] * flat) / sum(weights))


def test_where_all_weights_are_zero_all_count_alike():
    zero = Trust("sure", np.zeros(1), np.array([-9.0]))
    members = [Member(n, [p], scores={"sure": zero}) for n, p in (("a", [0.9, 0.1]), ("b", [0.2, 0.8]))]
    np.testing.assert_allclose(combine(members, "weighted", by="sure").support, [[0.55, 0.45]])


def test_the_surest_of_many_has_half_the_votes():
    # five members: the surest has 2.5 votes against 4 others who agree; of three who agree with each other, 3 beat 2.5
    def member(name, choice, log_odds):
        outputs = np.full((1, 3), 0.2)
        outputs[0, choice] = 0.6
        return Member(name, outputs, scores={"sure": Trust("sure", np.array([0.5]), np.array([log_odds]))})

    def vote(choices):
        return combine(
            [member(f"m{i}", c, 5.0 if i == 0 else 0.0) for i, c in enumerate(choices)], "confidence_vote", by="sure"
        )

    assert vote([2, 0, 0, 1, 1]).predicted[0] == 2
    assert vote([2, 0, 0, 0, 1]).predicted[0] == 0
    tie = vote([2, 0, 0, 1])  # two votes against two: the surest decides
    assert (tie.predicted[0], bool(tie.tied[0])) == (2, True)


def test_a_score_of_other_predictions_is_refused():
    with pytest.raises(InputError, match=r"score 'sure' of this member's own predictions.*judges 1 in row 0"):
        Member("m", [[0.9, 0.1]], scores={"sure": Trust("sure", np.ones(1), np.ones(1), np.array([1]))})


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: Ensemble(()), InputError, "empty ensemble"),
        (lambda: combine([]), InputError, "empty ensemble"),
        (lambda: Member("m", [[0.5, 0.6]]), InputError, "m: probabilities: expected rows that sum to 1"),
        (lambda: Member("m", [[2.0, -1.0]]), InputError, "if these are logits"),
        (lambda: Member("m", [[0.5, 0.5]], classes=[1, 1]), InputError, "classes: expected each once, got 1"),
        (lambda: Member("m", [[0.5, 0.5]] * 2, rows=[4, 4]), InputError, "rows: expected each once, got 4"),
        (lambda: Member("m", [[0.5, 0.5]], rows=[4, 5]), ShapeError, "rows: expected 1"),
        (lambda: _two(name="a"), InputError, "got 'a' more than once"),
        (lambda: _two(classes=[0, 2]), InputError, "expected the same classes.*'b' has 1"),
        (lambda: _two(probabilities=[[0.5, 0.5]] * 3), ShapeError, "got 2 of 'a' and 3 of 'b'; say which"),
        (lambda: _two(rows=[0, 1]), InputError, "expected rows of all members or of none, but 'a' has none"),
        (lambda: _two(own=[0, 1], rows=[2, 3]), InputError, "'a' shares none"),
        (lambda: combine([_one()], "mean"), InputError, "rule: expected one of"),
        (lambda: combine([_one()], "average", by="margin"), InputError, "by: expected no score"),
        (lambda: combine([_one()], "dictator"), InputError, "by: expected the name of a score"),
        (lambda: combine([_one()], "dictator", by="margin"), InputError, "expected a score 'margin', got none"),
        (lambda: combine([_energetic()], "weighted", by="energy"), InputError, r"confidences in \[0, 1\] as weights"),
        (lambda: judge([_one()], [0, 1], "own"), InputError, "a: expected a bank"),
        (lambda: judge([_one()], [0, 1], "hybrid"), InputError, "embedding: expected the name of a member"),
        (lambda: judge([_one()], [0, 1], "own", embedding="a"), InputError, "embedding: expected nothing"),
        (lambda: judge([_one()], [0, 5], "softmax"), InputError, "among the 2 classes, got 5 in row 1"),
        (lambda: judge([_one()], [0], "softmax"), ShapeError, "predicted: expected 2"),
        (lambda: Member.of("m", Embeddings([[1.0]], predicted=[0])), InputError, "m: expected embeddings with logits"),
        (lambda: Member.of("m", [[1.0, 2.0]], Bank([[0.0]], [0])), InputError, "m: expected embeddings beside a bank"),
        (lambda: Member.of("m", [[1.0, np.inf]]), InputError, "m: logits: expected finite numbers"),
        (lambda: Member.of("m", Embeddings([[1.0]], [[1.0, 2.0]]), classes=[0, 1]), InputError, "which have their own"),
        (lambda: accuracy_by_size([_one()], [0, 1], sizes=[2]), InputError, r"with 1 members, got \[2\]"),
    ],
)
def test_bad_input_is_refused_by_name(make, error, words):
    with pytest.raises(error, match=words):
        make()


def _one(**parts):
    return Member("a", [[0.9, 0.1], [0.3, 0.7]], **parts)


def _two(name="b", probabilities=((0.5, 0.5), (0.5, 0.5)), own=None, **parts):
    return Ensemble((_one(rows=own), Member(name, probabilities, **parts)))


def _energetic():
    return _one(scores={"energy": score.energy([[9.0, 1.0], [2.0, 4.0]])})


def _pair_of_views(n=600, seed=1):
    """One world seen by two networks: each sees a different coordinate well, so that their evidence adds."""
    world = TwoGaussians(1.0, 1)
    members = []
    generator = np.random.default_rng(seed)
    labels, train_labels = generator.integers(0, 2, n), generator.integers(0, 2, 3000)
    for i in range(2):
        signs, train_signs = np.where(labels == 1, 1.0, -1.0), np.where(train_labels == 1, 1.0, -1.0)
        vectors = (signs + generator.normal(size=n))[:, None]
        train = (train_signs + generator.normal(size=3000))[:, None]
        logits = np.concatenate([-vectors, vectors], axis=1)
        member = Member.of(f"v{i}", Embeddings(vectors, logits), Bank(train, train_labels), kind="Reg", k=200)
        members.append(member)
    assert world.d == 1
    return members, labels


def test_evidence_is_summed_averaged_or_taken_from_one_embedding():
    members, _ = _pair_of_views(50)
    predicted = combine(members).predicted
    each = [score.distance(m.bank, m.vectors, predicted, k=20) for m in members]
    summed, own = judge(members, predicted, "summed", k=20), judge(members, predicted, "own", k=20)
    np.testing.assert_allclose(summed.log_odds, each[0].log_odds + each[1].log_odds)
    np.testing.assert_allclose(summed.confidence, expit(summed.log_odds))
    np.testing.assert_allclose(own.confidence, (each[0].confidence + each[1].confidence) / 2)
    np.testing.assert_allclose(expit(own.log_odds), np.mean([expit(e.log_odds) for e in each], axis=0))
    hybrid = judge(members, predicted, "hybrid", embedding="v1", k=20)
    np.testing.assert_array_equal(hybrid.log_odds, each[1].log_odds)
    fair = judge(members, predicted, "softmax")
    mean = np.mean([m.probabilities[np.arange(50), predicted] for m in members], axis=0)
    np.testing.assert_allclose(fair.confidence, mean)
    np.testing.assert_allclose(fair.log_odds, logit(mean), rtol=1e-9)


def test_the_averaged_softmax_does_not_saturate():
    tiny = 1e-30
    members = [Member(n, [[1.0, 0.0, 0.0], [1.0, tiny, tiny]]) for n in "ab"]
    trust = judge(members, [0, 0], "softmax")
    assert trust.confidence.tolist() == [1.0, 1.0]
    assert trust.log_odds[0] > trust.log_odds[1] == pytest.approx(-np.log(2 * tiny))


def test_summed_evidence_ranks_two_views_as_bayes_does():
    members, labels = _pair_of_views(4000)
    predicted = combine(members).predicted  # softmax of (-x, x): its logit is 2 x, the Bayes log-odds of each view
    correct = predicted == labels
    both = np.abs(members[0].vectors[:, 0] + members[1].vectors[:, 0]).astype(float)  # the optimal ranking
    best = metrics.auroc(both, correct)
    found = {how: metrics.auroc(judge(members, predicted, how, k=200).log_odds, correct) for how in ("summed", "own")}
    assert found["summed"] > best - 0.01
    assert found["summed"] > found["own"]


def test_rows_that_a_member_lacks_are_judged_by_the_others():
    members, _ = _pair_of_views(40)
    whole = Ensemble(tuple(_on_rows(m, np.arange(40)) for m in members))
    cut = Ensemble((_on_rows(members[0], np.arange(40)), _on_rows(members[1], np.arange(25, 5, -1))))
    predicted = combine(whole).predicted
    for how in ("summed", "own", "softmax"):
        full, part = judge(whole, predicted, how, k=20), judge(cut, predicted, how, k=20)
        has = np.arange(6, 26)
        np.testing.assert_allclose(part.log_odds[has], full.log_odds[has])
        alone = judge([whole.members[0]], predicted, how, k=20)
        lacks = np.setdiff1d(np.arange(40), has)
        np.testing.assert_allclose(part.log_odds[lacks], alone.log_odds[lacks])
        np.testing.assert_allclose(part.confidence[lacks], alone.confidence[lacks])
    with pytest.raises(InputError, match="'v1' lacks 20"):
        judge(cut, predicted, "hybrid", embedding="v1", k=20)


def _on_rows(member, rows):
    return Member(
        member.name, member.probabilities[rows], rows=rows, vectors=member.vectors[rows], bank=member.bank, kind="Reg"
    )


def test_a_pair_is_scored_in_the_embedding_of_the_second():
    members, _ = _pair_of_views(60)
    first, second = pair(*members, k=20)
    expected = score.distance(second.bank, second.vectors, members[0].predicted, k=20)
    np.testing.assert_array_equal(first.scores["hybrid"].log_odds, expected.log_odds)
    own = score.distance(second.bank, second.vectors, members[1].predicted, k=20)
    np.testing.assert_array_equal(second.scores["hybrid"].log_odds, own.log_odds)
    back = np.arange(60)[::-1]
    turned = pair(_on_rows(members[0], back), _on_rows(members[1], np.arange(60)), k=20)[0]
    np.testing.assert_array_equal(turned.scores["hybrid"].log_odds, expected.log_odds[back])
    with pytest.raises(InputError, match=r"expected all rows of 'v0'.*got 30 of 60"):
        pair(_on_rows(members[0], back), _on_rows(members[1], np.arange(30)))


def _zoo(per_kind, inputs=200, seed=3):
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, 5, inputs)
    members = []
    for kind, noise in (("Reg", 2.0), ("Dist", 1.5), ("AT", 1.0)):
        for i in range(per_kind):
            logits = 2 * np.eye(5)[labels] + noise * generator.normal(size=(inputs, 5))
            members.append(Member.of(f"{kind}{i}", Embeddings(np.ones((inputs, 1)), logits), kind=kind))
    return members, labels


def test_groups_of_one_size_share_no_network_where_they_suffice():
    members, labels = _zoo(6)
    growth = accuracy_by_size(members, labels, ["average", "weighted:margin"], sizes=[1, 2, 3, 4, 6], repeats=3, seed=7)
    names = {line.composition for line in growth.lines}
    assert names == {"Reg", "Dist", "AT", "AT+Dist", "AT+Reg", "Dist+Reg"}
    assert growth.line("AT", "average").sizes.tolist() == [1, 2, 3, 4, 6]
    assert growth.line("AT", "average").disjoint.tolist() == [True, True, False, False, False]
    assert growth.line("AT+Dist", "average").sizes.tolist() == [2, 4, 6]
    assert growth.line("AT+Dist", "average").disjoint.tolist() == [True, True, False]
    assert growth.line("AT", "average").mean[-1] > growth.line("AT", "average").mean[0]
    # all six: every group is the same
    assert growth.line("AT", "average").spread[-1] == 0
    everyone = combine([m for m in members if m.kind == "AT"]).predicted
    assert growth.line("AT", "average").mean[-1] == (everyone == labels).mean()


def test_disjoint_groups_of_one_are_the_members_themselves():
    members, labels = _zoo(4)
    reg = [m for m in members if m.kind == "Reg"]
    line = accuracy_by_size(reg, labels, sizes=[1], repeats=4).lines[0]
    assert sorted(line.accuracies[0]) == sorted((m.predicted == labels).mean() for m in reg)
    assert line.spread[0] == pytest.approx(np.std(line.accuracies[0], ddof=1))
    np.testing.assert_allclose(line.hits[0], np.mean([m.predicted == labels for m in reg], axis=0))


def test_lines_of_one_composition_compare_the_same_groups():
    members, labels = _zoo(6)
    growth = accuracy_by_size(
        members, labels, ["average", "majority"], sizes=[2, 4], compositions=["AT+Reg"], repeats=3
    )
    one, two = growth.lines
    sizes, mean, spread = growth.difference(one, two)
    assert sizes.tolist() == [2, 4]
    np.testing.assert_allclose(mean, (one.accuracies - two.accuracies).mean(axis=1))
    np.testing.assert_allclose(spread, (one.accuracies - two.accuracies).std(axis=1, ddof=1))
    record = growth.records()[0]
    assert record["composition"] == "AT+Reg"
    assert record["mean"] == one.mean[0]
    again = accuracy_by_size(members, labels, ["average"], sizes=[2, 4], compositions=["AT+Reg"], repeats=3)
    assert (again.lines[0].accuracies == one.accuracies).all()
    with pytest.raises(InputError, match=r"expected one of AT\+Reg average"):
        growth.line("AT", "average")
    with pytest.raises(InputError, match="compositions: expected one of 'AT', 'Dist', 'Reg'"):
        accuracy_by_size(members, labels, compositions=["Dits"])


def test_a_single_group_has_no_spread():
    members, labels = _zoo(2)
    growth = accuracy_by_size(members, labels, ["average", "majority"], sizes=[2], compositions=["AT"], repeats=1)
    assert growth.lines[0].spread.tolist() == [0.0]
    assert growth.difference(*growth.lines)[2].tolist() == [0.0]


def test_groups_with_gaps_are_measured_on_the_rows_they_have():
    members, labels = _zoo(2, inputs=30)
    at = [m for m in members if m.kind == "AT"]
    cut = [
        Member("a", at[0].probabilities[:20], rows=np.arange(20), kind="AT"),
        Member("b", at[1].probabilities[10:], rows=np.arange(10, 30), kind="AT"),
    ]
    line = accuracy_by_size(cut, labels, ["average"], sizes=[1], repeats=2).lines[0]
    right = [m.predicted == labels for m in at]
    assert sorted(line.accuracies[0]) == sorted([right[0][:20].mean(), right[1][10:].mean()])
    seen = np.concatenate([right[0][:10], np.mean(right, axis=0)[10:20], right[1][20:]])  # each by those that have it
    np.testing.assert_allclose(line.hits[0], seen)
