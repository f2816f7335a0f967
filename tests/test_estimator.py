"""The estimator is a good citizen of scikit-learn, and says what ``distance`` says."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.special
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

import vicinal
from vicinal import Bank, NeighborConfidence
from vicinal.errors import InputError
from vicinal.mass import KERNELS

X, Y = load_iris(return_X_y=True)


def checks():
    for model in (NeighborConfidence(), NeighborConfidence(k=3, kernel="inverse")):
        for estimator, check in estimator_checks_generator(model):
            yield pytest.param(estimator, check, id=f"{model}-{check.func.__name__}")


@pytest.mark.parametrize(("estimator", "check"), list(checks()))
def test_it_passes_every_check_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("k", [1, 10, 120])
def test_every_class_gets_the_distance_score_of_that_prediction(kernel, k):
    model = NeighborConfidence(k=k, kernel=kernel).fit(X[:-20], Y[:-20])
    bank = Bank(X[:-20], Y[:-20])
    odds, shares = model.decision_function(X), model.predict_proba(X)
    for code, label in enumerate(model.classes_):
        trust = vicinal.distance(bank, X, np.full(len(X), label), k=k, kernel=kernel)
        np.testing.assert_allclose(shares[:, code], trust.confidence, atol=1e-12)
        np.testing.assert_allclose(odds[:, code], trust.log_odds, rtol=1e-8, atol=1e-7)
    np.testing.assert_allclose(model.score_samples(X), odds.max(axis=1))
    assert (model.predict(X) == model.classes_[shares.argmax(axis=1)]).all()


def test_two_classes_have_one_column_of_log_odds_that_shares_agree_with():
    model = NeighborConfidence(k=150).fit(X[:100], Y[:100] == 1)
    odds = model.decision_function(X)
    assert odds.shape == (150,)
    np.testing.assert_allclose(scipy.special.expit(odds), model.predict_proba(X)[:, 1], atol=1e-9)


def test_labels_may_be_words():
    words = np.array(["setosa", "versicolor", "virginica"])[Y]
    model = NeighborConfidence(k=10).fit(X, words)
    assert (model.predict(X) == words).mean() > 0.95
    assert model.classes_.tolist() == ["setosa", "versicolor", "virginica"]


def test_more_neighbours_than_points_are_all_of_them():
    small = NeighborConfidence(k=50).fit(X[::10], Y[::10])
    whole = NeighborConfidence(k=15).fit(X[::10], Y[::10])
    assert (small.decision_function(X) == whole.decision_function(X)).all()


def test_one_class_is_certain_and_finite():
    model = NeighborConfidence(k=2).fit(X[:10], np.zeros(10))
    assert (model.predict_proba(X) == 1).all()
    assert np.isfinite(model.decision_function(X)).all()


def test_it_lives_in_a_pipeline_under_a_grid_search():
    pipeline = make_pipeline(StandardScaler(), PCA(3), NeighborConfidence())
    search = GridSearchCV(pipeline, {"neighborconfidence__k": [1, 5, 50], "neighborconfidence__kernel": ["exp"]}, cv=3)
    search.fit(X, Y)
    assert search.best_score_ > 0.9
    assert search.best_params_["neighborconfidence__k"] in (1, 5, 50)
    again = clone(search.best_estimator_).fit(X, Y)
    assert (again.decision_function(X) == search.best_estimator_.decision_function(X)).all()


def test_cross_val_predict_gives_log_odds_of_points_left_out():
    odds = cross_val_predict(NeighborConfidence(k=20), X, Y, cv=5, method="decision_function")
    right = odds.argmax(axis=1) == Y
    assert right.mean() > 0.9
    assert odds.max(axis=1)[right].mean() > odds.max(axis=1)[~right].mean()


def test_data_frames_keep_their_columns():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcd"))
    model = NeighborConfidence(k=5).fit(frame, Y)
    assert model.feature_names_in_.tolist() == list("abcd")
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[list("dcba")])
    scaled = make_pipeline(StandardScaler().set_output(transform="pandas"), NeighborConfidence(k=5)).fit(frame, Y)
    assert scaled.score(frame, Y) > 0.9
    assert scaled[-1].feature_names_in_.tolist() == list("abcd")


def test_a_pickle_answers_as_the_original():
    model = NeighborConfidence(k=7, kernel="inverse").fit(X, Y)
    again = pickle.loads(pickle.dumps(model))
    assert (again.decision_function(X) == model.decision_function(X)).all()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"k": 0}, "k: expected a whole number"),
        ({"k": 2.5}, "k: expected a whole number"),
        ({"kernel": "gauss"}, "kernel: expected one of 'exp', 'count', 'inverse', got 'gauss'"),
    ],
)
def test_bad_settings_are_refused_when_it_is_fitted(wrong, said):
    with pytest.raises(InputError, match=said):
        NeighborConfidence(**wrong).fit(X, Y)
