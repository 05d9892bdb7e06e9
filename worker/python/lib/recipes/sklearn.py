"""scikit-learn: estimators are in subpackages with compiled modules. The data of its small datasets is kept in memory."""

import copy
import functools

MODULES = """
sklearn.cluster sklearn.compose sklearn.covariance sklearn.cross_decomposition sklearn.decomposition sklearn.discriminant_analysis
sklearn.dummy sklearn.ensemble sklearn.feature_extraction.text sklearn.feature_selection sklearn.gaussian_process sklearn.impute
sklearn.inspection sklearn.isotonic sklearn.kernel_ridge sklearn.linear_model sklearn.manifold sklearn.metrics sklearn.mixture
sklearn.model_selection sklearn.multiclass sklearn.multioutput sklearn.naive_bayes sklearn.neighbors sklearn.neural_network
sklearn.pipeline sklearn.preprocessing sklearn.semi_supervised sklearn.svm sklearn.tree sklearn.datasets
"""


def rehearse():
    import numpy
    from sklearn import cluster, datasets, ensemble, linear_model, model_selection, pipeline, preprocessing

    table, target = datasets.make_classification(n_samples=60, n_features=4, random_state=0)
    model = pipeline.make_pipeline(preprocessing.StandardScaler(), linear_model.LogisticRegression())
    model_selection.cross_val_score(model, table, target, cv=2)
    ensemble.RandomForestClassifier(n_estimators=3).fit(table, target).predict(table)
    ensemble.HistGradientBoostingClassifier(max_iter=2).fit(table, target)
    cluster.KMeans(2, n_init=1).fit(table)
    linear_model.LinearRegression().fit(numpy.eye(3), [1, 2, 3])
    repr(model), model._repr_html_()


def _kept(load):
    """Replaces a function that reads a file by one that reads each file once."""
    once = functools.cache(load)
    return functools.wraps(load)(lambda *args, **named: copy.deepcopy(once(*args, **named)))


def install():
    from sklearn.datasets import _base

    for name in ("load_csv_data", "load_gzip_compressed_csv_data", "load_descr"):
        setattr(_base, name, _kept(getattr(_base, name)))
    for load in (_base.load_iris, _base.load_wine, _base.load_breast_cancer, _base.load_digits, _base.load_diabetes):
        load()
