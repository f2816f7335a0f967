import inspect

import numpy as np
import pytest

from vicinal import Bank, Embeddings, score, scoring
from vicinal.errors import InputError
from vicinal.scoring import SCORES, Settings
from vicinal.values import LOG_PROBABILITIES

_RNG = np.random.default_rng(3)
BANK = Bank(_RNG.normal(size=(60, 4)), np.repeat([0, 1, 5], 20))
INPUTS = Embeddings(_RNG.normal(size=(9, 4)), logits=_RNG.normal(size=(9, 3)), classes=[0, 1, 5])


def test_every_score_of_the_library_has_its_name():
    assert set(SCORES) == set(score.__all__)


@pytest.mark.parametrize("name", SCORES)
def test_a_score_takes_the_settings_that_its_function_has(name):
    keywords = {
        one.name for one in inspect.signature(getattr(score, name)).parameters.values() if one.kind == one.KEYWORD_ONLY
    }
    assert set(SCORES[name].takes) == keywords - {"probabilities"}


EXPECTED = {
    "distance": lambda **s: score.distance(BANK, INPUTS.vectors, INPUTS.predicted, **s),
    "kth_distance": lambda **s: score.kth_distance(BANK, INPUTS.vectors, **s),
    "trust_ratio": lambda **s: score.trust_ratio(BANK, INPUTS.vectors, INPUTS.predicted, **s),
    "mahalanobis": lambda **s: score.mahalanobis(BANK, INPUTS.vectors, INPUTS.predicted, **s),
    "margin": lambda **s: score.margin(INPUTS.logits, **s),
    "entropy": lambda **s: score.entropy(INPUTS.logits, **s),
    "top_two_gap": lambda **s: score.top_two_gap(INPUTS.logits, **s),
    "max_logit": lambda **s: score.max_logit(INPUTS.logits, **s),
    "energy": lambda **s: score.energy(INPUTS.logits, **s),
}
GIVEN = {"k": 7, "kernel": "inverse", "unit": True, "relative": True, "temperature": 2.5}


@pytest.mark.parametrize("name", SCORES)
def test_a_score_by_name_is_the_function_of_that_name(name):
    plain = scoring.apply([name], INPUTS, BANK)[name]
    np.testing.assert_array_equal(plain.log_odds, EXPECTED[name]().log_odds)
    taken = {key: value for key, value in GIVEN.items() if key in SCORES[name].takes}
    tuned = scoring.apply([name], INPUTS, BANK, Settings(**taken))[name]
    np.testing.assert_array_equal(tuned.log_odds, EXPECTED[name](**taken).log_odds)
    assert bool(taken) == (not np.array_equal(tuned.log_odds, plain.log_odds))


def test_settings_reach_the_scores_that_take_them_and_no_other():
    found = scoring.apply(
        ["margin", "distance", "kth_distance", "margin"], INPUTS, BANK, Settings(k=3, temperature=2.0)
    )
    assert list(found) == ["margin", "distance", "kth_distance"]
    np.testing.assert_array_equal(found["margin"].log_odds, score.margin(INPUTS.logits, temperature=2.0).log_odds)
    assert found["distance"].neighbors.k == found["kth_distance"].neighbors.k == 3


def test_exclude_self_scores_the_bank_itself():
    own = Embeddings(BANK.vectors, predicted=BANK.labels)
    found = scoring.apply(["distance", "trust_ratio"], own, BANK, Settings(k=5, exclude_self=True))
    assert not (found["distance"].neighbors.indices == np.arange(len(BANK))[:, None]).any()
    expected = score.trust_ratio(BANK, BANK.vectors, BANK.labels, exclude_self=True)
    np.testing.assert_array_equal(found["trust_ratio"].log_odds, expected.log_odds)


@pytest.mark.parametrize(
    ("names", "given", "said"),
    [
        (["margin"], {"k": 0}, r"k: expected a score that takes it \(distance, kth_distance\), got margin"),
        (["distance", "margin"], {"unit": True}, r"unit: .* \(kth_distance\), got distance, margin"),
        (["trust_ratio"], {"temperature": 0.0}, "temperature: expected a score that takes it"),
    ],
)
def test_settings_that_no_score_takes_are_refused(names, given, said):
    with pytest.raises(InputError, match=said):
        scoring.apply(names, INPUTS, BANK, Settings(**given))


def test_an_unknown_score_is_refused_with_the_closest():
    with pytest.raises(InputError, match="got 'entropie'; did you mean 'entropy'"):
        scoring.apply(["entropie"], INPUTS)
    with pytest.raises(InputError, match="did you mean 'distance'"):
        scoring.needs(["distanse"])


@pytest.mark.parametrize(
    ("name", "inputs", "bank", "said"),
    [
        ("distance", INPUTS, None, "distance: expected a bank of training points"),
        (
            "trust_ratio",
            Embeddings(INPUTS.vectors),
            BANK,
            "trust_ratio: expected predicted classes, or logits, got none",
        ),
        ("energy", Embeddings(INPUTS.vectors), None, "energy: expected logits, got none"),
    ],
)
def test_a_score_without_what_it_looks_at_is_refused(name, inputs, bank, said):
    with pytest.raises(InputError, match=said):
        scoring.apply([name], inputs, bank)


def test_needs_are_what_the_embeddings_must_hold():
    assert scoring.needs(["distance"]) == ("predicted",)
    assert scoring.needs(["margin", "kth_distance", "distance"]) == ("logits", "predicted")
    assert scoring.needs(["kth_distance"]) == ()


def test_default_scores_are_the_papers_as_far_as_they_can_be_computed():
    assert scoring.default_scores(INPUTS, BANK) == ("distance", "margin", "entropy")
    assert scoring.default_scores(INPUTS, None) == ("margin", "entropy")
    bare = Embeddings(INPUTS.vectors, predicted=INPUTS.predicted)
    assert scoring.default_scores(bare, BANK) == ("distance",)
    with pytest.raises(InputError, match="expected a bank or logits"):
        scoring.default_scores(bare, None)


def test_probabilities_do_not_stand_for_the_size_of_logits():
    shares = np.array([[0.2, 0.8], [1.0, 0.0]])
    facts = dict([LOG_PROBABILITIES])
    inputs = Embeddings([[0.0], [1.0]], logits=np.log(np.maximum(shares, 1e-300)), facts=facts)
    for name in ("margin", "entropy", "top_two_gap"):
        expected = getattr(score, name)(probabilities=shares)
        np.testing.assert_allclose(scoring.apply([name], inputs)[name].confidence, expected.confidence, atol=1e-12)
    for name in ("max_logit", "energy"):
        with pytest.raises(InputError, match=f"{name}: expected logits, got probabilities"):
            scoring.apply([name], inputs)
